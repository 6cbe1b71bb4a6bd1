"""What Go's structs say about each built-in message: field numbers, pointers, omitempty, Go type names."""
