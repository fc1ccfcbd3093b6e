"""The estimator interface that every solver implements."""
