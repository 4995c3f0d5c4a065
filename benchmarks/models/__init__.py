"""Language models and ONNX models beside their runtimes."""
