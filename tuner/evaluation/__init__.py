"""One configuration in, metrics per query out: splits, plans, the objective and early stopping of trials."""
