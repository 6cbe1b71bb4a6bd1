"""Label and field selectors: what a client asks for in a LIST or a watch. Parsed once, immutable and hashable."""
