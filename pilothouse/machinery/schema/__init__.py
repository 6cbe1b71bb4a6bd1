"""The types of the built-in kinds: what Go's structs would hold, compiled on first use of a kind."""
