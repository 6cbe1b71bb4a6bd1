"""What a write of a service takes from the pools, gives back, and undoes when it fails."""
