"""Each paper's printed figures, drawn again on our data, and the claims about them."""
