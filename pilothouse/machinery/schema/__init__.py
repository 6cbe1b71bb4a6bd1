"""Types of the built-in kinds, equivalent to Go's structs and compiled on first use."""
