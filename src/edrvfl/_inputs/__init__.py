"""What comes in: columns, targets, weights."""
