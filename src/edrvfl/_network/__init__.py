"""The paper: hidden layers, weighting, pruning, and Algorithm 1 in grow.py."""
