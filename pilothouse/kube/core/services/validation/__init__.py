"""What a service may say, by topic."""
