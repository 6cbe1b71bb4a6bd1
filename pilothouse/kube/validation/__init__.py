"""Validation rules shared by several groups."""
