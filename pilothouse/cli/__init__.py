"""The command line: `pilothouse <command>`."""
