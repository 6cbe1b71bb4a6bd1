"""Jobs that have finished."""
