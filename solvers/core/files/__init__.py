"""Files and folders that are written as a whole or not at all, and proven when they are read."""
