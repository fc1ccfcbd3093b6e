"""Models that compare a document with the others of its query."""
