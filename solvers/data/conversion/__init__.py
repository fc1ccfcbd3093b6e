"""Data of any size to folders of arrays that are mapped, and the cache of those that were read before."""
