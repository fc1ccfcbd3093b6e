"""The columns of tables: which is what, and how they become features, here and wherever a model scores a table."""
