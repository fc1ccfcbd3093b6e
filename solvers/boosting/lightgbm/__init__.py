"""Rankers whose trees LightGBM grows."""
