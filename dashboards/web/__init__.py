"""The server of the live pages, and the report in one file."""
