"""Explanations of models: what each feature contributes to a score, and what a model loses without a feature."""
