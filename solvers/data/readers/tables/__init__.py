"""Files and objects that hold a table: a row a document, columns by name."""
