"""What stands between the library and others: array libraries, BLAS, threads, scikit-learn."""
