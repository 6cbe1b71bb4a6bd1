"""What `pilothouse check` looks at."""
