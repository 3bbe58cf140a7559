"""Save and load models, without pickle."""
