"""What expressions cost at most, estimated before they run."""
