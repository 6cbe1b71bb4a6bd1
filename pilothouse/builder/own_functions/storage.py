"""The storage of a resource with just the verbs that the author's functions allow.

What a storage can do is found out by its type (registry/interface.py), so each set of verbs has one.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from pilothouse.apiserver.registry.view import BareView, RegistryView

_NEEDED: Final[dict[str, frozenset[str]]] = {
    # verb                functions
    "get": frozenset({"get"}),
    "list": frozenset({"list"}),
    "watch": frozenset({"list"}),
    "create": frozenset({"create"}),
    "update": frozenset({"update"}),
    "delete": frozenset({"delete"}),
    "delete_collection": frozenset({"list", "delete"}),
}


class OwnStorage(BareView):
    """Its subclasses have the verbs, as `RegistryView` does them."""


_types: dict[frozenset[str], type[OwnStorage]] = {}


def storage_type(functions: Set[str]) -> type[OwnStorage]:
    """The same one each time for the same functions. One object can be got where all can be listed."""
    able = functions | {"get"} if "list" in functions else functions
    verbs = frozenset(verb for verb, needed in _NEEDED.items() if needed <= able)
    if verbs not in _types:
        _types[verbs] = type(OwnStorage.__name__, (OwnStorage,), {verb: getattr(RegistryView, verb) for verb in verbs})
    return _types[verbs]
