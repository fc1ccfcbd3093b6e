"""Documents grouped by query, and what is computed from their features alone: products, scaling, centring."""
