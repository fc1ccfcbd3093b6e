"""Processes that evaluate trials, here and on a Dask cluster."""
