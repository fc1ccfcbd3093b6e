"""The columns of queries: how each is given, checked, selected, joined and shown."""
