"""The search of a study: what is tried next, where it runs, and what becomes of it."""
