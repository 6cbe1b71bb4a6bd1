"""Checks of `pilothouse doctor`."""
