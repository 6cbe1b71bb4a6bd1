"""Field sets, in the notation of managedFields: fieldsV1.

    {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}

contains the container and its image, but not `spec`: a node is a member if it is empty or has a ".". The root is never
a member. Sets are immutable and may share parts. Every node has a member at or below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from pilothouse.machinery.apply.elements import InvalidElement, canonical, order, shown
from pilothouse.machinery.objects import Json

FieldSet: TypeAlias = Json
Path: TypeAlias = tuple[str, ...]

MEMBER: FieldSet = {}
"""Node of a member without children."""

_SELF = "."


def of_paths(paths: Iterable[Path]) -> FieldSet:
    out: FieldSet = {}
    for path in paths:
        node = MEMBER
        for element in reversed(path):
            node = {element: node}
        out = union(out, node)
    return out


def of_fields(*dotted: str) -> FieldSet:
    """Return a set of dotted paths: `of_fields("status", "metadata.labels")`."""
    return of_paths(tuple(f"f:{name}" for name in path.split(".")) for path in dotted)


def is_member(node: FieldSet) -> bool:
    return not node or _SELF in node


def below(node: FieldSet) -> FieldSet:
    """Return the children of a node, without its own membership."""
    if _SELF not in node:
        return node
    children = node.copy()
    del children[_SELF]
    return children


def node_of(member: bool, children: FieldSet) -> FieldSet | None:
    """Return a node, or None for an empty node."""
    if not children:
        return MEMBER if member else None
    return {_SELF: MEMBER, **children} if member else children


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a or not b or a is b:
        return a or b
    out = dict(a)
    for key, node in b.items():
        own = out.get(key)
        out[key] = node if own is None else node_union(own, node)
    return ordered(out) if len(out) > len(a) else out


def ordered(fields: FieldSet) -> FieldSet:
    return {key: fields[key] for key in sorted(fields, key=order)} if len(fields) > 1 else fields


def node_union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the node with the members of both."""
    if a and b:
        return union(a, b)
    if _SELF in a or _SELF in b or not (a or b):
        return a or b
    return {_SELF: MEMBER, **(a or b)}


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the members of `a` that are not in `b`. A parent in `b` does not remove its children."""
    if not b:
        return a
    out: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        remaining = node if other is None else _difference(node, other)
        if remaining is not None:
            out[key] = remaining
    return out


def _difference(a: FieldSet, b: FieldSet) -> FieldSet | None:
    if not a:
        return None if is_member(b) else a
    return node_of(is_member(a) and not is_member(b), difference(below(a), below(b)))


def recursive_difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the members of `a` that are neither in `b` nor below a member of `b`."""
    out: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            out[key] = node
        elif not is_member(other):
            remaining = node_of(is_member(node), recursive_difference(below(node), other))
            if remaining is not None:
                out[key] = remaining
    return out


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    out: FieldSet = {}
    if not b:
        return out
    for key, node in a.items():
        other = b.get(key)
        if other is not None:
            both = node_of(is_member(node) and is_member(other), intersection(below(node), below(other)))
            if both is not None:
                out[key] = both
    return out


def has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and node is not None and is_member(node)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield every member: all members of a level, then the members below each of them."""
    children = below(fields)
    for key, node in children.items():
        if is_member(node):
            yield (*prefix, key)
    for key, node in children.items():
        yield from paths(node, (*prefix, key))


def shown_path(path: Path) -> str:
    """Format a path for messages: `.spec.containers[name="c"].image`."""
    return "".join(map(shown, path))


def decode(raw: Any) -> FieldSet:
    """Decode a fieldsV1 from a client. Raises InvalidElement."""
    if raw is None:
        return {}
    return below(_decode(raw))


def _decode(raw: Any) -> FieldSet:
    if not isinstance(raw, dict):
        raise InvalidElement(str(raw))
    out: FieldSet = {}
    for key in sorted(raw, key=_checked_order):
        node = MEMBER if key == _SELF else _decode(raw[key])
        out[key if key == _SELF else canonical(key)] = node
    return MEMBER if out.keys() == {_SELF} else out


def _checked_order(element: str) -> Any:
    return order(element) if element == _SELF else order(canonical(element))
