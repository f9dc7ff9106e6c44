"""Models as C and ONNX."""
