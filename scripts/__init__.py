"""What checks of the repository need."""
