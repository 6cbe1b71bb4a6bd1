"""Types of fields: their schemas, and conversion between instances and JSON."""
