"""Results of the tuner, and their worth."""
