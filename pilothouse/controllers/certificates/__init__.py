"""Certificates: the CA that pods trust, and requests for certificates."""
