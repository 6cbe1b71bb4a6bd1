"""Transformers: from what an object is to what is stored of it, and back.

The key under which a value is stored is bound into it, so that a value moved to another key can not be read there.
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
    """It would not be stored like this today: by another key, or not encrypted at all."""


class Transformer(Protocol):
    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        """Raises TransformFailed."""

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        """Raises TransformFailed."""


@dataclass(frozen=True, slots=True)
class Prefixed:
    prefix: bytes
    transformer: Transformer


class PrefixTransformers:
    """Several transformers as one: the first writes, and a prefix on each value says which of them can read it.

    Values that any other than the first has written are stale.
    """

    def __init__(
        self, transformers: Sequence[Prefixed], *, no_match: str = "no matching prefix found", resource: str = ""
    ) -> None:
        """`resource`: under which the transformations are counted."""
        self._transformers = tuple(transformers)
        self._no_match = no_match
        self._resource = resource

    def counted_for(self, resource: str) -> PrefixTransformers:
        """The same, with those inside, for one resource of all those that share them."""
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
                # Where nothing marks a value as not encrypted, another transformer may still know it.
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
