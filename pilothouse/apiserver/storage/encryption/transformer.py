"""Transformers between plain values and stored values.

The storage key is authenticated with the value, so a value moved to another key cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pilothouse.apiserver.storage.encryption.metrics import count_unknown, counted_transformation
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.machinery.dataclass import dataclass


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
