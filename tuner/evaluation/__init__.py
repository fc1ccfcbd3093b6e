"""The evaluation of a configuration: its metrics by query, early stopping, and the scores and models that it stores."""
