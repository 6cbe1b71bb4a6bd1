"""Aggregated OpenAPI: the documents of the three servers and of all aggregated servers."""
