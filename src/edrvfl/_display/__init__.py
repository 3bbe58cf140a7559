"""Pictures of fitted models, in scikit-learn's manner."""
