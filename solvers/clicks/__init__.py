"""Clicks: what was shown and clicked, models of the position's part in it, judgments, and counterfactual estimates."""
