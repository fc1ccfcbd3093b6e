"""What minimises a loss and a penalty: batch, one-pass and Newton methods."""
