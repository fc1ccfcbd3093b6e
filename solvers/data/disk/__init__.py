"""Arrays and ids of queries as files."""
