"""Tuning in one pass over the data: many configurations learn from each block of queries, and race."""
