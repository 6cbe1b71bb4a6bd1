"""Metrics of JWT authentication, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

LATENCY = HistogramTally(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "Seconds that it took to authenticate a JWT, by result.",
    ("result", "jwt_issuer_hash"),
    bounds=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 3.0, 4.0, 6.0),
    registry=REGISTRY,
)
JWKS_FETCHES = CounterTally(
    "apiserver_authentication_jwt_authenticator_jwks_fetches",
    "Fetches of the keys of an issuer, by result.",
    ("result", "jwt_issuer"),
    registry=REGISTRY,
)
