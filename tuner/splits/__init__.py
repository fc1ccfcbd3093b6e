"""The queries of a split on disk, their division into training and validation queries, and archives of them."""
