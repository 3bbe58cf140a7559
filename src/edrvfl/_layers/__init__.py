"""The paper: random layers, weighting, pruning, and Algorithm 1."""
