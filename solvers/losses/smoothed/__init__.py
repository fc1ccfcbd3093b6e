"""Losses of pairs whose weights are means over noisy rankings."""
