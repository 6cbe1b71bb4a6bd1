"""Bodies to values and back: JSON and YAML with Go's rules and Go's words, and the typed decoding of a whole body."""
