"""Passes, windows, random numbers and flows beside other libraries."""
