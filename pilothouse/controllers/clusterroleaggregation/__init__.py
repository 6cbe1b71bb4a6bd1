"""Aggregated cluster roles have the rules of the roles that they select."""
