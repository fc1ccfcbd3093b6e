"""Estimators in files of skops: what these may name, and what is refused before anything is loaded."""
