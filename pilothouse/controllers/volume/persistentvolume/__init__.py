"""Claims get volumes, and volumes that no claim has any more are given back."""
