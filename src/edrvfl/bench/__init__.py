"""The study: the methods of the paper on its datasets, by its protocol."""
