"""Ranking metrics: NDCG, MAP, MRR, precision, recall and the conventions they are computed by."""
