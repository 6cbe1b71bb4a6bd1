"""Merging of lists in a strategic merge patch.

Lists of scalars become their union. Lists of objects are merged by merge key: elements with equal keys are merged, new
elements are added, `$patch: delete` removes elements, and `$patch: replace` replaces the list. Other lists are
replaced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import go_string, go_type, go_value
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch import interface, strategic_lists
from pilothouse.machinery.patch.merge_patch import identity

PATCH = "$patch"
DELETE = "delete"
REPLACE = "replace"
MERGE = "merge"
RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"

_MALFORMED = {
    SET_ELEMENT_ORDER: "invalid patch format of setElementOrder list",
    DELETE_FROM_PRIMITIVE_LIST: "invalid patch format of primitive list",
}


def is_directive(value: Any) -> bool:
    """Report whether the value is an object with `$patch`."""
    return isinstance(value, dict) and PATCH in value


def is_parallel_list(key: str) -> bool:
    return key.startswith((SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST))


def field_of(key: str, directive: str) -> str:
    """Return the field of `$directive/field`. Raises MalformedPatch."""
    prefix, slash, field = key.partition("/")
    if not slash or prefix != directive:
        raise interface.MalformedPatch(_MALFORMED[directive])
    return field


def cleaned(value: Any, *, keep_nulls: bool) -> Any:
    """Return the value without directive objects, and without null members unless `keep_nulls`."""
    if isinstance(value, dict):
        return {
            key: cleaned(part, keep_nulls=keep_nulls)
            for key, part in value.items()
            if not is_directive(part) and (keep_nulls or part is not None)
        }
    if isinstance(value, list):
        return [cleaned(part, keep_nulls=keep_nulls) for part in value if not is_directive(part)]
    return value


def bad_type(expected: Any, value: Any) -> interface.PatchFailed:
    actual = "%!s(<nil>)" if value is None else go_type(value)
    return interface.PatchFailed(f"expected a {go_type(expected)}, but received a {actual}")


def no_merge_key(element: Json, merge_key: str) -> interface.PatchFailed:
    return interface.PatchFailed(f"map: {go_value(element)} does not contain declared merge key: {merge_key}")


MergeObject: TypeAlias = Callable[[Json, Json, interface.PatchSchema], Json]


@dataclass(frozen=True, slots=True)
class ListField:
    """List field of a struct and the merge function of its elements."""

    schema: interface.PatchSchema
    merge_object: MergeObject

    def identity_of(self, element: Any) -> Hashable:
        """Return the identity of an element: the value of its merge key, or the element itself without a merge key."""
        key = self.schema.merge_key
        if not key and not isinstance(element, dict):
            return identity(element)
        if not isinstance(element, dict):
            raise strategic_lists.bad_type({}, element)
        if key not in element:
            raise strategic_lists.no_merge_key(element, key)
        return identity(element[key])

    def merge(self, original: list[Any], patch: list[Any], *, deletes: bool = False) -> list[Any]:
        """Return the merged list; modifies both arguments. With `deletes`, the patch lists scalars to remove."""
        if not deletes and interface.strategy_of(self.schema) != strategic_lists.MERGE:
            return patch
        if not original and not patch:
            return original
        if element_type(original, patch) is not dict:
            return self._without(original, patch) if deletes else self._union(original, patch)
        if not self.schema.merge_key:
            element = self.schema.element
            kind = element.kind.value if element else ""
            raise interface.PatchFailed(f"cannot merge lists without merge key for {kind}")
        return self._merge_objects(original, patch)

    def interleave(self, merged: list[Any], patch: list[Any], original: list[Any]) -> list[Any]:
        """Return the merged elements in their final order: elements of the patch in its order, others in the
        original's.

        Where the two orders permit a choice, the relative order of the original is kept:

            original a b c d   patch d x b   →   a c d x b
        """
        patch_rank, rank = self._ranks(patch), self._ranks(original)
        identified = [(self.identity_of(element), element) for element in merged]
        right = deque(
            sorted((item for item in identified if item[0] in patch_rank), key=lambda item: patch_rank[item[0]])
        )
        left = sorted(
            (item for item in identified if item[0] not in patch_rank), key=lambda item: rank.get(item[0], -1)
        )
        out: list[Any] = []
        for key, element in left:
            while right and not (key in rank and right[0][0] in rank and rank[key] < rank[right[0][0]]):
                out.append(right.popleft()[1])
            out.append(element)
        return out + [element for _, element in right]

    def _ranks(self, elements: list[Any]) -> dict[Hashable, int]:
        """Return the first position of each element."""
        last = len(elements) - 1
        return {self.identity_of(element): last - i for i, element in enumerate(reversed(elements))}

    def _union(self, original: list[Any], patch: list[Any]) -> list[Any]:
        unique = {identity(element): element for element in original + patch}
        return self.interleave(list(unique.values()), patch, original)

    def _without(self, original: list[Any], patch: list[Any]) -> list[Any]:
        removed = set(map(identity, patch))
        return [element for element in original if identity(element) not in removed]

    def _merge_objects(self, original: list[Json], patch: list[Json]) -> list[Json]:
        with_directive = [element for element in patch if strategic_lists.is_directive(element)]
        plain = [element for element in patch if not strategic_lists.is_directive(element)]
        deleted = {self.identity_of(element) for element in with_directive if self._is_deletion(element)}
        if any(element[strategic_lists.PATCH] == strategic_lists.REPLACE for element in with_directive):
            return self.interleave(plain, [], plain)
        key = self.schema.merge_key
        remaining = [element for element in original if key not in element or identity(element[key]) not in deleted]
        return self.interleave(self._merge_elements(remaining, plain), plain, remaining)

    def _merge_elements(self, original: list[Json], patch: list[Json]) -> list[Json]:
        element_schema = self.schema.element
        assert element_schema is not None
        merged, rank = list(original), self._ranks(original)
        for element in patch:
            key = self.identity_of(element)
            if key in rank:
                merged[rank[key]] = self.merge_object(merged[rank[key]], element, element_schema)
            else:
                rank[key] = len(merged)
                merged.append(element)
        return merged

    def _is_deletion(self, element: Json) -> bool:
        directive = element[strategic_lists.PATCH]
        if directive == strategic_lists.MERGE:
            raise interface.PatchFailed("merging lists cannot yet be specified in the patch")
        if directive not in (strategic_lists.DELETE, strategic_lists.REPLACE):
            raise interface.PatchFailed(f"unknown patch type: {go_string(directive)} in map: {go_value(element)}")
        return bool(directive == strategic_lists.DELETE)


def element_type(*lists: list[Any]) -> type:
    """Return the common type of all elements. Raises PatchDoesNotApply, PatchFailed."""
    types = [type(element) for elements in lists for element in elements]
    if not types:
        raise interface.PatchFailed("no elements in any of the given slices")
    if types[0] is list:
        raise interface.PatchDoesNotApply("lists of lists are not supported")
    if len(set(types)) > 1:
        raise interface.PatchFailed(f"list element types are not identical: {go_value(list(lists))}")
    return types[0]
