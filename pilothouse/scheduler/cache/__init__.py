"""The scheduler cache: nodes with their present and assumed pods."""
