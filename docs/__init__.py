"""The documentation: pages in Markdown, and what builds them, runs their examples and opens them."""
