"""Ranking metrics: NDCG, MAP, MRR, ERR, precision, recall, ... and the conventions they are computed by."""
