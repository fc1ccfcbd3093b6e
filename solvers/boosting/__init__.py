"""Solvers that add up weak rankers: AdaRank, RankBoost, and trees grown by LightGBM and XGBoost."""
