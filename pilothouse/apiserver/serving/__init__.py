"""Serving: listeners, TLS, HTTP/1.1 and HTTP/2; a Request goes in, a Response comes out."""
