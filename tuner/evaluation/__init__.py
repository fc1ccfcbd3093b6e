"""One configuration in, metrics per query out: the objective, early stopping of trials, and what they leave."""
