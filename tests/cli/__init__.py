"""The command line in every day's use."""
