"""Event objects about other objects, without flooding the server."""
