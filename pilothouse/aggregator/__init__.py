"""The aggregator: the first server of the chain, which every request enters."""
