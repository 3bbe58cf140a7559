"""The limit of an infinitely wide random layer: a ridge with a Laplace kernel."""
