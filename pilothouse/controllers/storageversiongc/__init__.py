"""What servers that are gone have said about how they store."""
