"""What the tuner finds and keeps."""
