"""Strategic merge patch: a merge patch with type information, so that lists can be merged by element.

    {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}   patched with
    {"containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}]}   →
    {"containers": [{"name": "a", "image": "2"}]}

Directives: `$patch` (replace, delete), `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.gofmt import go_string, go_value
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch import interface, strategic_lists
from pilothouse.machinery.patch.merge_patch import copied
from pilothouse.machinery.patch.strategic_lists import ListField, element_type


def apply(document: Json, patch: Json, schema: interface.PatchSchema) -> Json:
    """Return the patched document; modifies `document`. Raises MalformedPatch, PatchDoesNotApply and PatchFailed."""
    return merge_object(document, copied(patch), schema)


def merge_object(original: Json, patch: Json, schema: interface.PatchSchema) -> Json:
    """Return the merged object; modifies both arguments."""
    if strategic_lists.PATCH in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(strategic_lists.SET_ELEMENT_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise strategic_lists.bad_type([], order)
        name = strategic_lists.field_of(key, strategic_lists.SET_ELEMENT_ORDER)
        live, changed = _list_in(original, name), _list_in(patch, name)
        field = ListField(interface.list_field(schema, name), merge_object)
        merged = merge_in_order(field, live=live, changed=changed, order=order)
        if merged is not None:
            original[name] = merged
            patch.pop(name, None)
    for key, value in patch.items():
        _merge_member(original, key, value, schema)
    return original


def _directed(patch: Json) -> Json:
    directive = patch[strategic_lists.PATCH]
    if directive == strategic_lists.REPLACE:
        return {key: value for key, value in patch.items() if key != strategic_lists.PATCH}
    if directive == strategic_lists.DELETE:
        return {}
    raise interface.PatchFailed(f"unknown patch type: {go_string(directive)} in map: {go_value(patch)}")


def _retain_keys(original: Json, patch: Json) -> None:
    """Remove unlisted keys from the original. Raises MalformedPatch if the patch sets an unlisted key."""
    if strategic_lists.RETAIN_KEYS not in patch:
        return
    listed = patch.pop(strategic_lists.RETAIN_KEYS)
    retained = {key for key in listed if isinstance(key, str)} if isinstance(listed, list) else None
    set_by_patch = {
        key for key, value in patch.items() if value is not None and not strategic_lists.is_parallel_list(key)
    }
    if retained is None or not set_by_patch <= retained:
        raise interface.MalformedPatch("invalid patch format of retainKeys")
    for key in original.keys() - retained:
        del original[key]


def _list_in(document: Json, name: str) -> list[Any] | None:
    if name not in document:
        return None
    if not isinstance(document[name], list):
        raise strategic_lists.bad_type([], document[name])
    return list(document[name])


def _merge_member(original: Json, key: str, value: Any, schema: interface.PatchSchema) -> None:
    deletes = key.startswith(strategic_lists.DELETE_FROM_PRIMITIVE_LIST)
    if deletes:
        key = strategic_lists.field_of(key, strategic_lists.DELETE_FROM_PRIMITIVE_LIST) or key
    if value is None:
        original.pop(key, None)
    elif key not in original or type(original[key]) is not type(value):
        if not deletes:
            if strategic_lists.is_directive(value):
                original.pop(key, None)
            else:
                original[key] = strategic_lists.cleaned(value, keep_nulls=False)
    elif isinstance(value, dict):
        field = interface.struct_field(schema, key)
        replaces = interface.strategy_of(field) == strategic_lists.REPLACE
        original[key] = value if replaces else merge_object(original[key], value, field)
    elif isinstance(value, list):
        original[key] = ListField(interface.list_field(schema, key), merge_object).merge(
            original[key], value, deletes=deletes
        )
    else:
        original[key] = value


def merge_in_order(
    field: ListField, *, live: list[Any] | None, changed: list[Any] | None, order: list[Any]
) -> list[Any] | None:
    """Return the list in the directive's order; None if neither the object nor the patch has the list."""
    check_order(field, changed or [], order)
    if live is None and changed is None:
        return None
    if element_type(live or [], changed or []) is dict and not field.schema.merge_key:
        raise _unordered(field, live=live, changed=changed, order=order)
    server_order = _server_order(field, live or [], changed or [])
    if live is None:
        merged = strategic_lists.cleaned(changed, keep_nulls=True)
    else:
        merged = live if changed is None else field.merge(live, changed)
    _check_elements(field, order)
    return field.interleave(merged, order, server_order)


def _unordered(
    field: ListField, *, live: list[Any] | None, changed: list[Any] | None, order: list[Any]
) -> interface.PatchFailed:
    """Return the error of a list of objects without merge key. Upstream panics unless the patch empties the list."""
    first = (live or changed or [])[0]
    if live is not None and changed is not None:
        field.merge(live, changed)
    others = [element for element in order if not isinstance(element, dict)]
    return strategic_lists.bad_type({}, others[0]) if others else strategic_lists.no_merge_key(first, "")


def check_order(field: ListField, changed: list[Any], order: list[Any]) -> None:
    """Raises PatchFailed unless the patch's elements appear in `order` in the same sequence. Deletions are exempt."""
    if not changed or not order:
        return
    expected = iter(map(field.identity_of, order))
    for element in changed:
        if strategic_lists.is_directive(element):
            continue
        if field.identity_of(element) not in expected:
            lists = (
                f"{go_value(changed)}\n doesn't match {strategic_lists.SET_ELEMENT_ORDER} list:\n{go_value(order)}\n"
            )
            raise interface.PatchFailed(f"The order in patch list:\n{lists}")


def _server_order(field: ListField, live: list[Any], changed: list[Any]) -> list[Any]:
    """Return the assumed previous order: kept elements, then as many new elements as were deleted.

    Upstream's results depend on this order, because upstream reuses the space of deleted elements for new ones.
    """
    plain = [element for element in changed if not strategic_lists.is_directive(element)]
    deletions = [element for element in changed if strategic_lists.is_directive(element)]
    if any(element[strategic_lists.PATCH] != strategic_lists.DELETE for element in deletions):
        return list(live)
    deleted = set(map(field.identity_of, deletions))
    remaining = [element for element in live if field.identity_of(element) not in deleted]
    identities = set(map(field.identity_of, remaining))
    new = [element for element in plain if field.identity_of(element) not in identities]
    return remaining + new[: len(live) - len(remaining)]


def _check_elements(field: ListField, order: list[Any]) -> None:
    if not field.schema.merge_key:
        return
    for position, element in enumerate(order):
        if not isinstance(element, dict):
            raise interface.PatchFailed(f"value for key {position} is not a map")
