"""The watch cache: one resource held in memory, which answers GET, LIST and WATCH on behalf of the store."""
