"""JSON merge patches are checked and applied as kube-apiserver does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.objects import deep_equal
from pilothouse.machinery.patch import merge_patch
from pilothouse.machinery.patch.interface import MalformedPatch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": 1}, {"b": {"c": None, "d": 2}}, {"a": 1, "b": {"d": 2}}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {}}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
        ({"a": [1]}, {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        ({"a": {"b": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
        ({"a": 1}, {"missing": None}, {"a": 1}),
        ({"a": 1}, [{"b": None}, None], [{}, None]),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_the_rest(document: Any, patch: Any, expected: Any) -> None:
    assert deep_equal(merge_patch.apply(deepcopy(document), patch), expected)


@pytest.mark.parametrize(
    ("patch", "strict", "message"),
    [
        (
            [],
            True,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (5, True, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (None, True, "Invalid JSON Patch"),
        (None, False, "Invalid JSON Patch"),
        ("x", False, "Invalid JSON Patch"),
    ],
)
def test_a_body_that_is_no_merge_patch_is_malformed(patch: Any, strict: bool, message: str) -> None:
    with pytest.raises(MalformedPatch) as refusal:
        merge_patch.check(patch, strict=strict)
    assert str(refusal.value) == message


def test_a_patch_that_nests_too_deep_is_malformed() -> None:
    patch: dict[str, Any] = {}
    for _ in range(300):
        patch = {"a": patch}
    with pytest.raises(MalformedPatch, match="exceeded max depth"):
        merge_patch.check(patch)


def test_objects_pass_the_check_and_lists_only_the_lenient_one() -> None:
    merge_patch.check({})
    merge_patch.check([], strict=False)


def test_a_patch_can_be_applied_again_after_its_result_was_changed() -> None:
    patch: dict[str, Any] = {"a": {"b": []}}
    merge_patch.apply({}, patch)["a"]["b"].append(1)
    assert patch == {"a": {"b": []}}


SCALARS = st.sampled_from([0, 1, "x", True])
KEYS = st.sampled_from("abc")
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=2) | st.dictionaries(KEYS, v, max_size=3), max_leaves=8)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=3)
PATCHES = st.recursive(
    st.dictionaries(KEYS, VALUES | st.none(), max_size=3),
    lambda p: st.dictionaries(KEYS, p | VALUES | st.none(), max_size=3),
    max_leaves=6,
)


def difference(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = dict.fromkeys(a.keys() - b.keys())
    for key, value in b.items():
        if isinstance(value, dict) and isinstance(a.get(key), dict):
            out[key] = difference(a[key], value)
        elif key not in a or not deep_equal(a[key], value):
            out[key] = value
    return out


def rfc_7396(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = rfc_7396(out.get(key), value)
    return out


@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert deep_equal(merge_patch.apply(deepcopy(a), difference(a, b)), b)


@given(DOCUMENTS, PATCHES)
def test_without_nulls_in_lists_the_result_is_that_of_the_rfc(document: dict[str, Any], patch: dict[str, Any]) -> None:
    assert deep_equal(merge_patch.apply(deepcopy(document), patch), rfc_7396(document, patch))


@given(DOCUMENTS, PATCHES)
def test_strategic_patch_is_idempotent(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(deepcopy(document), patch)
    assert deep_equal(merge_patch.apply(deepcopy(once), patch), once)
