"""The checks of `pilothouse doctor`, one file for each kind of patient."""
