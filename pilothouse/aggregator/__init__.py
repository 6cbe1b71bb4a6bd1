"""The aggregator: the first server of the chain and the entry of every request."""
