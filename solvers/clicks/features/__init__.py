"""Features as of the search, from what a click log knew before it; a table to learn from; and a test for leaks."""
