"""Models that leave the process: files and ONNX."""
