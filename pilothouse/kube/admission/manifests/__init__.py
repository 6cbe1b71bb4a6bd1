"""Static manifests of admission webhooks and policies."""
