"""Rows that are elsewhere: sources, and sums over their parts."""
