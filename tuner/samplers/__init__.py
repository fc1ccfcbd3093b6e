"""Samplers for Optuna's studies, and the record of trials as arrays."""
