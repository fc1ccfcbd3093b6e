"""The embedded example data, built from the documentation of installed packages."""
