"""Files and objects that hold a table: a row per document, columns by name."""
