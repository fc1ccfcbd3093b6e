"""Processes that evaluate trials, here and on the workers of joblib."""
