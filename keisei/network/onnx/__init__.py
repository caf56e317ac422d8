"""Networks as ONNX files: towers are exported with torch, everything else is done without it."""
