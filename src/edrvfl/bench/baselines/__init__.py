"""The competitors of the paper's Table 3, one file each: scikit-learn classifiers and their search spaces."""
