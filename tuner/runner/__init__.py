"""The stages of a study, and workers that join it."""
