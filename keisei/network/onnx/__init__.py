"""Networks as ONNX files: exported with torch, loaded without it."""
