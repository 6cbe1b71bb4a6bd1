"""Strategic merge patch: a merge patch that knows the types, so that lists can be merged element by element.

    {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}   patched with
    {"containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}]}   →
    {"containers": [{"name": "a", "image": "2"}]}

Directives in a patch: `$patch` (replace, delete), `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.govalue import go_string, go_value
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch import directives
from pilothouse.machinery.patch.errors import MalformedPatch, PatchFailed
from pilothouse.machinery.patch.schema import PatchSchema
from pilothouse.machinery.patch.strategic_lists import ListField
from pilothouse.machinery.patch.strategic_order import merge_in_order
from pilothouse.machinery.patch.strategic_schema import list_field, strategy_of, struct_field
from pilothouse.machinery.patch.values import copied


def apply(document: Json, patch: Json, schema: PatchSchema) -> Json:
    """The patched document; `document` itself is used up. Raises MalformedPatch, PatchDoesNotApply and PatchFailed."""
    return merge_object(document, copied(patch), schema)


def merge_object(original: Json, patch: Json, schema: PatchSchema) -> Json:
    """Both are used up."""
    if directives.PATCH in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(directives.SET_ELEMENT_ORDER)]:
        _merge_ordered_list(original, patch, schema, key)
    for key, value in patch.items():
        _merge_member(original, key, value, schema)
    return original


def _directed(patch: Json) -> Json:
    directive = patch[directives.PATCH]
    if directive == directives.REPLACE:
        return {key: value for key, value in patch.items() if key != directives.PATCH}
    if directive == directives.DELETE:
        return {}
    raise PatchFailed(f"unknown patch type: {go_string(directive)} in map: {go_value(patch)}")


def _retain_keys(original: Json, patch: Json) -> None:
    """Drops what is not listed from the original. What the patch sets must be listed."""
    if directives.RETAIN_KEYS not in patch:
        return
    listed = patch.pop(directives.RETAIN_KEYS)
    retained = {key for key in listed if isinstance(key, str)} if isinstance(listed, list) else None
    set_by_patch = {key for key, value in patch.items() if value is not None and not directives.is_parallel_list(key)}
    if retained is None or not set_by_patch <= retained:
        raise MalformedPatch("invalid patch format of retainKeys")
    for key in original.keys() - retained:
        del original[key]


def _merge_ordered_list(original: Json, patch: Json, schema: PatchSchema, directive: str) -> None:
    """Merges the list that a `$setElementOrder` belongs to, and takes both out of the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise directives.bad_type([], order)
    name = directives.field_of(directive, directives.SET_ELEMENT_ORDER)
    live, changed = _list_in(original, name), _list_in(patch, name)
    field = ListField(list_field(schema, name), merge_object)
    merged = merge_in_order(field, live=live, changed=changed, order=order)
    if merged is not None:
        original[name] = merged
        patch.pop(name, None)


def _list_in(document: Json, name: str) -> list[Any] | None:
    if name not in document:
        return None
    if not isinstance(document[name], list):
        raise directives.bad_type([], document[name])
    return list(document[name])


def _merge_member(original: Json, key: str, value: Any, schema: PatchSchema) -> None:
    deletes = key.startswith(directives.DELETE_FROM_PRIMITIVE_LIST)
    if deletes:
        key = directives.field_of(key, directives.DELETE_FROM_PRIMITIVE_LIST) or key
    if value is None:
        original.pop(key, None)
    elif key not in original or type(original[key]) is not type(value):
        if not deletes:
            _take(original, key, value)
    elif isinstance(value, dict):
        field = struct_field(schema, key)
        replaces = strategy_of(field) == directives.REPLACE
        original[key] = value if replaces else merge_object(original[key], value, field)
    elif isinstance(value, list):
        original[key] = ListField(list_field(schema, key), merge_object).merge(original[key], value, deletes=deletes)
    else:
        original[key] = value


def _take(original: Json, key: str, value: Any) -> None:
    """Sets what the original does not have, without nulls and directives."""
    if directives.is_directive(value):
        original.pop(key, None)
    else:
        original[key] = directives.cleaned(value, keep_nulls=False)
