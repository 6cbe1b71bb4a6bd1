"""The most that expressions can cost, estimated before they run."""
