"""The commands for models in production."""
