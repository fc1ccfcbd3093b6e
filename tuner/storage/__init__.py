"""The durable record of a study: trials, leases and artifacts."""
