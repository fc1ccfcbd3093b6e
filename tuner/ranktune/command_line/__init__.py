"""The command line: its commands, the options that they share, and the last handler of errors."""
