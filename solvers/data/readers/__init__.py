"""Files and data frames in, documents grouped by query out."""
