"""Volumes and claims that are in use are not deleted under their users."""
