"""API Priority and Fairness: limits concurrent requests, and queues the excess fairly."""
