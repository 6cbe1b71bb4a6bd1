"""Attribute-based access control from a policy file."""
