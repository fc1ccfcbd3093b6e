"""Click logs to impressions: csv, Parquet, jsonl and User Behavior Insights, in bounded memory."""
