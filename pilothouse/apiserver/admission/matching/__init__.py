"""Request matching for webhooks and policies."""
