"""The embedded example data, built from the documentation of installed packages."""

NAME = "api-search"
"""The name by which the data are given instead of a path."""
