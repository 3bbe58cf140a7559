"""Fitted estimators as ONNX models, built from their records."""
