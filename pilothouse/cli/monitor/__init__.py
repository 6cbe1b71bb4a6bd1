"""What a running server does, read off its metrics and shown in a terminal."""
