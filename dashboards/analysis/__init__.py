"""The numbers that pages show."""
