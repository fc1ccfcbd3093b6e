"""Many configurations of online learners that learn from the same queries at once."""
