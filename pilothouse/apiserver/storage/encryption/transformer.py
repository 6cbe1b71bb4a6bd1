"""Transformers between plain values and stored values.

The storage key is authenticated with the value, so a value moved to another key cannot be read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import Gauge

from pilothouse.apiserver.storage.errors import PluginCallFailed, TransformFailed
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.machinery.dataclass import dataclass

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
            # The gRPC code of the plugin failure behind the error, if any.
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, PluginCallFailed):
                cause = cause.__cause__
            _OPERATIONS.inc((resource, kind, name, _LOCAL if cause is None else cause.code))
        raise
    _OPERATIONS.inc((resource, kind, name, "OK"))
    _DURATION.observe((kind, name), time.perf_counter() - start)


def count_unknown(resource: str) -> None:
    """Count a stored value that no transformer can read."""
    _OPERATIONS.inc((resource, "from_storage", "unknown", _LOCAL))


@dataclass(frozen=True, slots=True)
class Plain:
    value: bytes
    stale: bool = False
    """The value would be stored differently now: under another key, or encrypted."""


class Transformer(Protocol):
    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        """Transform for storage. Raises TransformFailed."""

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        """Transform from storage. Raises TransformFailed."""


@dataclass(frozen=True, slots=True)
class Prefixed:
    prefix: bytes
    transformer: Transformer


class PrefixTransformers:
    """Combined transformers: the first writes; a value's prefix selects the reader.

    Values written by another transformer than the first are stale.
    """

    def __init__(
        self, transformers: Sequence[Prefixed], *, no_match: str = "no matching prefix found", resource: str = ""
    ) -> None:
        """`resource`: metric label of the transformations."""
        self._transformers = tuple(transformers)
        self._no_match = no_match
        self._resource = resource

    def counted_for(self, resource: str) -> PrefixTransformers:
        """Return a copy whose metrics are labelled with `resource`."""
        inner = [Prefixed(each.prefix, _counted_for(each.transformer, resource)) for each in self._transformers]
        return PrefixTransformers(inner, no_match=self._no_match, resource=resource)

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        first = self._transformers[0]
        with counted_transformation(self._resource, "to_storage", first.prefix):
            return first.prefix + await first.transformer.to_storage(value, key)

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        failures: list[str] = []
        for position, candidate in enumerate(self._transformers):
            if not stored.startswith(candidate.prefix):
                continue
            try:
                with counted_transformation(self._resource, "from_storage", candidate.prefix):
                    plain = await candidate.transformer.from_storage(stored[len(candidate.prefix) :], key)
            except TransformFailed as error:
                # Without a prefix, another transformer may still know the value.
                failures.append(str(error))
                continue
            return Plain(plain.value, plain.stale or position != 0)
        if not failures:
            count_unknown(self._resource)
        distinct = list(dict.fromkeys(failures))
        raise TransformFailed(
            (distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else "") or self._no_match
        )


def _counted_for(transformer: Transformer, resource: str) -> Transformer:
    return transformer.counted_for(resource) if isinstance(transformer, PrefixTransformers) else transformer
