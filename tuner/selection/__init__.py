"""From finished trials to the delivered model: candidates, blends, the estimate and the leaderboard."""
