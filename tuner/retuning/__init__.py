"""What a study takes over from an earlier one on other data, and the decision that it ends with."""
