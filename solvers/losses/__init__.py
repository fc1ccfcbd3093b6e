"""Losses, pair weights and penalties, and the order statistics below them."""
