"""What is tuned on what: readers of files and frames, the data catalogue and declared studies."""
