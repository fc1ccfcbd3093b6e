"""Studies on servers that track experiments."""
