"""The embedded example data, made of the documentation of five packages, and shipped as one file."""

NAME = "api-search"
"""The name by which the data are given instead of a path."""
