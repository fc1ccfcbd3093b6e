"""The views of what became of a study's model afterwards, one page each."""
