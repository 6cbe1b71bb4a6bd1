"""The APIService: strategy, storage and order."""
