"""Look at fitted models: displays, importances, the summary of notebooks."""
