"""What goes out: from the scores of layers to one answer, and from answers to probabilities."""
