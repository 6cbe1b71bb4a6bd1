"""Common parts of watches: queues, recent events, and dispatch."""
