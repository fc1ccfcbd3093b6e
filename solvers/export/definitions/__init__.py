"""Definitions of features for engines, from the columns of the training table."""
