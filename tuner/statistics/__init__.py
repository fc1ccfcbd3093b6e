"""Intervals, paired tests, Pareto fronts and parameter importance."""
