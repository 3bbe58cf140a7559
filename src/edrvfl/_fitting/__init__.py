"""How a model is made."""
