"""HPACK header compression (RFC 7541): decoder and encoder."""
