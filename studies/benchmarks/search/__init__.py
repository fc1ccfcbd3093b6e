"""Comparisons of samplers and of whole searches, and the problems that they run on."""
