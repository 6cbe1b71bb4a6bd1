"""Serving: listeners, TLS, HTTP/1.1 and HTTP/2; maps each Request to a Response."""
