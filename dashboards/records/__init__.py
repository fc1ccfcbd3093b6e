"""Studies as they are read from their records."""
