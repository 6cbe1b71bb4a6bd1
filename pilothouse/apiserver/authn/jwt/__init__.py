"""Tokens of external issuers: OpenID Connect ID tokens and other configured JWTs."""
