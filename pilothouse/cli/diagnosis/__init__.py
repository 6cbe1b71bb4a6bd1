"""What `pilothouse doctor` looks at, one file for each kind of patient."""
