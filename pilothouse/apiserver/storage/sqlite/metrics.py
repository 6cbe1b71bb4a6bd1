"""What a commit costs and how many writes share it."""

from __future__ import annotations

from prometheus_client import Histogram

from pilothouse.apiserver.metrics import REGISTRY

COMMIT_DURATION = Histogram(
    "pilothouse_storage_commit_duration_seconds",
    "Time to make one batch of writes durable in the embedded store.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
    registry=REGISTRY,
)
COMMIT_WRITES = Histogram(
    "pilothouse_storage_commit_writes",
    "Number of writes that one commit of the embedded store made durable.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    registry=REGISTRY,
)
