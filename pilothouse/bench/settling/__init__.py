"""Settled: a wait until everything in the server that works has nothing left to do."""
