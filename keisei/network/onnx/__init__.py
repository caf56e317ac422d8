"""Networks as ONNX files: written with torch, played without it."""
