"""One leader at a time, agreed on through a Lease."""
