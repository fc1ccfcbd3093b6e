"""Streams of days whose truth moves, and what a model is worth that is tuned once, refitted, or retuned every day."""
