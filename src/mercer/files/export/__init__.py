"""Export of models as C and ONNX."""
