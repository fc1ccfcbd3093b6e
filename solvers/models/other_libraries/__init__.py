"""Trees of other libraries, from their text, JSON or UBJSON: every number is checked before it is used."""
