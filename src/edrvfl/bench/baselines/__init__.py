"""The competitors of the paper's Table 3, and of today: scikit-learn classifiers and their search spaces."""
