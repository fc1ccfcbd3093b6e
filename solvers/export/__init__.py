"""Models in the formats of the systems that serve them."""
