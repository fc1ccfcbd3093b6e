"""What minimises the objective of RankSVM: hinges over all pairs, from a sample to all documents, along C."""
