"""The papers' published tables, and the experiments that reproduce them."""
