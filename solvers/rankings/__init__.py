"""Rankings given from outside: models of other libraries, files of scores, TREC runs, columns of the data."""
