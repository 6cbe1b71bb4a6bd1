"""HTTP/2 (RFC 9113), whichever end of the connection we are: every rule stands here once, every limit is ours to set.

A frame goes reader → dispatcher → stream. `serving/` and `outbound/` bring the streams, and say who may open one.
"""
