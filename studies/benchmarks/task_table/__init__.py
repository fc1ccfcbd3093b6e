"""The table of tasks: its rows and its file. ranktune.studies.laboratory measures them."""
