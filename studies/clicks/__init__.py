"""Sessions of simulated users whose behaviour is known, over data sets with grades."""
