"""The way in: filters, one a file, each a function from handler to handler. `chain.py` has them in order."""
