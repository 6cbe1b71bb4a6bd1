"""HTTP/2 (RFC 9113) for servers and clients: protocol rules and limits.

A frame passes reader → dispatcher → stream. `serving/` and `outbound/` implement the streams, and decide which peer may
open streams.
"""
