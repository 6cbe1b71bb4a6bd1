"""Attribute-based access control: a file of policies, each of which allows something to somebody."""
