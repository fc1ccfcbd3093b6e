"""The workers of clusters: those of Dask, Ray and backends of joblib."""
