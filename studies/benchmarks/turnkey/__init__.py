"""The comparison of whole tools at equal time.

data      cases of training, validation and test queries, from folders and files
peers     the tools: each in its own process, with a budget
cells     one tool on one split each, run or read from a file
results   the report: means, comparisons, verdicts
overall   all data sets together: mean ranks, our lead
command   the command
truth     what a study promises, and what its model is worth
"""
