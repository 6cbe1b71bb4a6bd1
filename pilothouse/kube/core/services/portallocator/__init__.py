"""Node ports: one bitmap in the store says which ports of the range are taken."""
