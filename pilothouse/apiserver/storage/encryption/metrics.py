"""Metrics of encryption at rest, with upstream's names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge

from pilothouse.apiserver.storage.errors import PluginCallFailed, TransformFailed
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally

_OPERATIONS = CounterTally(
    "apiserver_storage_transformation_operations",
    "[ALPHA] Total number of transformations. Successful transformation will have a status 'OK' and a varied status "
    "string when the transformation fails. The status, resource, and transformation_type fields can be used for "
    "alerting purposes. For example, you can monitor for encryption/decryption failures using the transformation_type "
    "(e.g., from_storage for decryption and to_storage for encryption). Additionally, these fields can be used to "
    "ensure that the correct transformers are applied to each resource.",
    ("resource", "transformation_type", "transformer_prefix", "status"),
    registry=REGISTRY,
)
_DURATION = HistogramTally(
    "apiserver_storage_transformation_duration_seconds",
    "[ALPHA] Latencies in seconds of value transformation operations.",
    ("transformation_type", "transformer_prefix"),
    bounds=[round(5e-6 * 2**power, 12) for power in range(25)],
    registry=REGISTRY,
)
CACHE_MISSES = CounterTally(
    "apiserver_storage_envelope_transformation_cache_misses",
    "[ALPHA] Total number of cache misses while accessing key decryption key(KEK).",
    (),
    registry=REGISTRY,
)
KEY_GENERATION = HistogramTally(
    "apiserver_storage_data_key_generation_duration_seconds",
    "[ALPHA] Latencies in seconds of data encryption key(DEK) generation operations.",
    (),
    bounds=[round(5e-6 * 2**power, 12) for power in range(14)],
    registry=REGISTRY,
)
CounterTally(  # always 0: the system's random source does not fail
    "apiserver_storage_data_key_generation_failures",
    "[ALPHA] Total number of failed data encryption key(DEK) generation operations.",
    (),
    registry=REGISTRY,
)


Gauge(  # always 0: for KMS v1, which is refused
    "apiserver_envelope_encryption_dek_cache_fill_percent",
    "[ALPHA] Percent of the cache slots currently occupied by cached DEKs.",
    registry=REGISTRY,
)
_IDENTITY = "identity"
_LOCAL = "unknown-non-grpc"


@contextmanager
def counted_transformation(resource: str, kind: str, prefix: bytes) -> Iterator[None]:
    """`kind`: from_storage or to_storage. Unencrypted values have no prefix."""
    name = prefix.decode() if prefix or kind == "to_storage" else _IDENTITY
    start = time.perf_counter()
    try:
        yield
    except TransformFailed as error:
        if name != _IDENTITY:  # identity does not count encrypted values
            _OPERATIONS.inc((resource, kind, name, _status(error)))
        raise
    _OPERATIONS.inc((resource, kind, name, "OK"))
    _DURATION.observe((kind, name), time.perf_counter() - start)


def count_unknown(resource: str) -> None:
    """Count a stored value that no transformer can read."""
    _OPERATIONS.inc((resource, "from_storage", "unknown", _LOCAL))


def _status(error: BaseException) -> str:
    """Return the gRPC code of the plugin failure behind the error, if any."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, PluginCallFailed):
        cause = cause.__cause__
    return _LOCAL if cause is None else cause.code
