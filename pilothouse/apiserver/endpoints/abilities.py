"""The protocols that a storage implements, found out once a type: `isinstance` of a protocol is slow."""

from __future__ import annotations

from pilothouse.apiserver.registry.interface import ABILITIES

_KNOWN: dict[type[object], frozenset[type[object]]] = {}


def abilities_of(storage: object) -> frozenset[type[object]]:
    """The protocols of `registry/interface.py` that it has."""
    known = _KNOWN.get(type(storage))
    if known is None:
        known = frozenset(ability for ability in ABILITIES if isinstance(storage, ability))
        _KNOWN[type(storage)] = known
    return known
