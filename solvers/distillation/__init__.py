"""Models as others that more systems can load: trees alone, or weights alone."""
