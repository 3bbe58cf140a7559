"""What a fitted model can still do because its read-outs have a closed form."""
