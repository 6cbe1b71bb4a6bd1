"""Faults: whom they concern, and what becomes of a request or a watch that one concerns."""
