"""Admission plugins that know built-in kinds, one a file."""
