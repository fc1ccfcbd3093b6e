"""Parts of the parser of ranking text: kernels of entries, and blocks in several threads."""
