"""Tokens that others issue: OpenID Connect ID tokens, and whatever signed JWTs a configuration speaks of."""
