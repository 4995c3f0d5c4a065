"""Files of other formats, and objects."""
