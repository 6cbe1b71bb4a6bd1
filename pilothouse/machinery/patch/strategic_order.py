"""`$setElementOrder`: the order that the client wants a merged list to have."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.govalue import go_value
from pilothouse.machinery.patch import directives
from pilothouse.machinery.patch.errors import PatchFailed
from pilothouse.machinery.patch.strategic_lists import ListField, element_type


def merge_in_order(
    field: ListField, *, live: list[Any] | None, changed: list[Any] | None, order: list[Any]
) -> list[Any] | None:
    """The list as the directive wants it; None when neither the object nor the patch has the list."""
    check_order(field, changed or [], order)
    if live is None and changed is None:
        return None
    element_type(live or [], changed or [])
    server_order = _server_order(field, live or [], changed or [])
    if live is None:
        merged = directives.cleaned(changed, keep_nulls=True)
    else:
        merged = live if changed is None else field.merge(live, changed)
    _check_elements(field, order)
    return field.interleave(merged, order, server_order)


def check_order(field: ListField, changed: list[Any], order: list[Any]) -> None:
    """Refuse a patch whose changed elements are not in the order list in the same order; deletions need not be there.
    Raises PatchFailed.
    """
    if not changed or not order:
        return
    wanted = iter(map(field.identity_of, order))
    for element in changed:
        if directives.is_directive(element):
            continue
        if field.identity_of(element) not in wanted:
            listed, given = go_value(changed), go_value(order)
            raise PatchFailed(
                f"The order in patch list:\n{listed}\n doesn't match {directives.SET_ELEMENT_ORDER} list:\n{given}\n"
            )


def _server_order(field: ListField, live: list[Any], changed: list[Any]) -> list[Any]:
    """The order that elements count as having had before: new ones stand last, as many as there are deleted ones.

    Upstream's order of results depends on it, since it reuses the room of deleted elements for new ones.
    """
    plain = [element for element in changed if not directives.is_directive(element)]
    marks = [element for element in changed if directives.is_directive(element)]
    if any(element[directives.PATCH] != directives.DELETE for element in marks):
        return list(live)
    gone = set(map(field.identity_of, marks))
    kept = [element for element in live if field.identity_of(element) not in gone]
    known = set(map(field.identity_of, kept))
    new = [element for element in plain if field.identity_of(element) not in known]
    return kept + new[: len(live) - len(kept)]


def _check_elements(field: ListField, order: list[Any]) -> None:
    if not field.schema.merge_key:
        return
    for position, element in enumerate(order):
        if not isinstance(element, dict):
            raise PatchFailed(f"value for key {position} is not a map")
