"""Label and field selectors of LIST and WATCH requests. Parsed once, immutable and hashable."""
