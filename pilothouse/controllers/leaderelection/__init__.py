"""Coordinated leader election: the server chooses who leads, among those who stand as candidates for a lease."""
