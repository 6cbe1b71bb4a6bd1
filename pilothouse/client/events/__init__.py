"""Recording of Event objects, with correlation and rate limits."""
