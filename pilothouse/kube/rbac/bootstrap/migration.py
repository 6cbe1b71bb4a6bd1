"""What older releases called otherwise: rights that were given under the old name are carried over, once.

An object under the new name settles the matter; so does the lack of one under the old name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilothouse.machinery.objects import Json, metadata

AGGREGATED = {name: f"system:aggregate-to-{name}" for name in ("admin", "edit", "view")}
"""Roles whose own rules moved to a part of them."""

SPLIT = {"system:discovery": "system:public-info-viewer"}
"""Bindings from which another was split off."""

_CARRIED = ("labels", "annotations")


def migrated_roles(stored: Mapping[str, Json]) -> Iterator[Json]:
    """From cluster roles by name to those that are to be created."""
    for old, new in AGGREGATED.items():
        if new not in stored and old in stored and stored[old].get("aggregationRule") is None:
            yield _renamed(stored[old], new) | {"rules": stored[old].get("rules")}


def migrated_bindings(stored: Mapping[str, Json]) -> Iterator[Json]:
    for old, new in SPLIT.items():
        if old in stored and new not in stored:
            reference = stored[old]["roleRef"] | {"name": new}
            yield _renamed(stored[old], new) | {"subjects": stored[old].get("subjects"), "roleRef": reference}


def _renamed(obj: Json, name: str) -> Json:
    carried = {field: dict(metadata(obj)[field]) for field in _CARRIED if metadata(obj).get(field)}
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": {"name": name, **carried}}
