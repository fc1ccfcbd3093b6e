"""What many configurations of rankers reach on many tasks: tasks, a table, and what is decided on it."""
