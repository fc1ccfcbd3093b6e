"""The Gaussian process and the acquisition function: arrays only, no Optuna."""
