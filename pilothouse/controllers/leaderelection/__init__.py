"""Coordinated leader election: the server elects a leader among the candidates for a lease."""
