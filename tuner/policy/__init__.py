"""What a study decides, as functions of what it knows, and the figures of other tasks that they rest on."""
