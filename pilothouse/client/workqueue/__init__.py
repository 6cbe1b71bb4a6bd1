"""Work queues, one layer a file: queue → delaying → rate limiting."""
