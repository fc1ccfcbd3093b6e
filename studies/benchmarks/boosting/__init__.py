"""The comparison of configurations of boosted rankers on many tasks.

variants  the configurations and bags, and how one is fitted
command   the command: fits or reads cells, and compares them by task and over tasks
"""
