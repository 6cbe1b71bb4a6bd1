"""The controllers that must run for the API to be usable alone."""
