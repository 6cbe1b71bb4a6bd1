"""What the watches of every store are made of: queues, the newest events, and who is told of which."""
