"""What flowcompute costs around the numbers."""
