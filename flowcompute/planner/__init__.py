"""From a graph to a plan: regions, canonical order, kernel IR, bytes. Touches no device and no data."""
