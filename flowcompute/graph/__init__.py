"""The graph, found by walking back from what is resolved: merged, hashed, drawn."""
