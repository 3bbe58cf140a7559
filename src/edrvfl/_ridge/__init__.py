"""The closed form: ridge read-outs, primal and dual, and their exact leave-one-out scores."""
