"""Models of clicks on logs of simulated users whose truth is known, and on a log of two policies."""
