"""Header compression (RFC 7541): what peers send is decoded, what we answer and ask is encoded."""
