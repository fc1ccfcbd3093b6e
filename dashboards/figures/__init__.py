"""Plotly figures, and the panels that hold them."""
