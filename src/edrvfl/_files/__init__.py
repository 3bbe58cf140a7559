"""Model files: a fitted estimator becomes arrays and a text that describes them, and comes back the same."""
