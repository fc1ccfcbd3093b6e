"""The loop that runs a study."""
