"""Admission plugins that know built-in kinds: one a file, or a folder where one takes several; `plugins.py` has all."""
