"""The views, one page each."""
