"""Work queues: deduplicating, delaying, rate limiting."""
