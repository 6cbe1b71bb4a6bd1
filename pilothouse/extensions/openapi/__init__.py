"""OpenAPI of custom resources."""
