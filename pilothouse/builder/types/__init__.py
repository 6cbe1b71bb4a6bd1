"""The types of an author's fields: the schema they make, and the way between instances and JSON."""
