"""Rows that come in blocks: a fit that holds a few blocks at a time, and sums over rows."""
