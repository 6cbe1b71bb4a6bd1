"""Service account tokens: issuing, authentication and OpenID discovery."""
