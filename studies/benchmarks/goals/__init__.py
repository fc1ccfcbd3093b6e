"""What the project promises of its speed, and how to see whether it is kept."""
