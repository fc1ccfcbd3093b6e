"""Data in blocks, and who computes on them."""
