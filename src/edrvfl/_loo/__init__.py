"""What is learnt from rows that a model did not see: combine, calibrate, weigh, cover."""
