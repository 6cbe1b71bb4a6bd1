"""JSON patches are decoded and applied as kube-apiserver does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.patch.interface import MalformedPatch, PatchDoesNotApply, TooManyOperations
from pilothouse.machinery.patch.json_patch import decode

DOCUMENT = {"data": {"a": "1", "x/y": "2", "m~n": "3", "none": None}, "list": [1, 2, 3], "deep": [{"k": [0]}]}


def applied(*operations: dict[str, Any], document: Any = DOCUMENT, **options: Any) -> Any:
    return decode(list(operations)).apply(deepcopy(document), **options)


@pytest.mark.parametrize(
    ("operation", "part", "expected"),
    [
        ({"op": "add", "path": "/data/b", "value": "9"}, "data", {"b": "9"}),
        ({"op": "add", "path": "/list/0", "value": 0}, "list", [0, 1, 2, 3]),
        ({"op": "add", "path": "/list/3", "value": 4}, "list", [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-", "value": 4}, "list", [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-1", "value": 4}, "list", [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-4", "value": 0}, "list", [0, 1, 2, 3]),
        ({"op": "add", "path": "ignored/list/0", "value": 0}, "list", [0, 1, 2, 3]),
        ({"op": "add", "path": "/deep/0/k/-", "value": 1}, "deep", [{"k": [0, 1]}]),
        ({"op": "remove", "path": "/list/1"}, "list", [1, 3]),
        ({"op": "remove", "path": "/list/-1"}, "list", [1, 2]),
        ({"op": "replace", "path": "/list/01", "value": 9}, "list", [1, 9, 3]),
        ({"op": "replace", "path": "/data/x~1y", "value": "9"}, "data", {"x/y": "9"}),
        ({"op": "replace", "path": "/data/m~0n", "value": "9"}, "data", {"m~n": "9"}),
        ({"op": "replace", "path": "/data/missing", "value": "9"}, "data", {"missing": "9"}),
        ({"op": "copy", "from": "/list", "path": "/list/0"}, "list", [[1, 2, 3], 1, 2, 3]),
        ({"op": "copy", "from": "/data/missing", "path": "/data/new"}, "data", {"new": None}),
        ({"op": "move", "from": "/list/0", "path": "/list/-"}, "list", [2, 3, 1]),
    ],
)
def test_an_operation_changes_its_part(operation: dict[str, Any], part: str, expected: Any) -> None:
    result = applied(operation)[part]
    assert (result if isinstance(expected, list) else {key: result[key] for key in expected}) == expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "frobnicate", "path": "/data"}, "Unexpected kind: frobnicate"),
        ({"path": "/data"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"op": "copy", "path": "/x"}, "copy operation failed to decode from: missing value"),
        (
            {"op": "add", "path": "", "value": {}},
            'add operation does not apply: doc is missing path: "": missing value',
        ),
        (
            {"op": "add", "path": "/data/none/x", "value": 1},
            'add operation does not apply: doc is missing path: "/data/none/x": missing value',
        ),
        (
            {"op": "add", "path": "/list/9", "value": 1},
            "error in add for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/list/one", "value": 1},
            "error in add for path: '/list/one': value was not a proper array index: 'one'",
        ),
        (
            {"op": "remove", "path": "/data/nope"},
            "error in remove for path: '/data/nope': Unable to remove nonexistent key: nope: missing value",
        ),
        ({"op": "remove", "path": ""}, 'remove operation does not apply: doc is missing path: "": missing value'),
        (
            {"op": "replace", "path": "/list/3", "value": 1},
            "replace operation does not apply: doc is missing key: /list/3: missing value",
        ),
        ({"op": "replace", "path": "", "value": 1}, "replace operation value must be object or array"),
        (
            {"op": "move", "from": "/data/nope", "path": "/data/b"},
            "error in move for path: 'nope': Unable to remove nonexistent key: nope: missing value",
        ),
        ({"op": "test", "path": "/data/a", "value": "2"}, "testing value /data/a failed: test failed"),
        (
            {"op": "test", "path": "/nope/a", "value": "2"},
            "test operation does not apply: is missing path: /nope/a: missing value",
        ),
    ],
)
def test_an_operation_that_does_not_fit_is_refused(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchDoesNotApply) as refusal:
        applied(operation)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("path", "value", "passes"),
    [
        ("/list", [1, 2, 3], True),
        ("/list", [1, 2, 3.0], False),
        ("/list/0", 1.0, False),
        ("/list/0", True, False),
        ("/deep", [{"k": [0]}], True),
        ("/deep", [{"k": [0], "l": None}], False),
        ("/data/missing", None, True),
        ("/data/none", None, True),
        ("", DOCUMENT, True),
        ("", {}, False),
    ],
)
def test_a_test_compares_whole_values(path: str, value: Any, passes: bool) -> None:
    operation = {"op": "test", "path": path, "value": value}
    if passes:
        assert applied(operation) == DOCUMENT
    else:
        with pytest.raises(PatchDoesNotApply):
            applied(operation)


def test_replacing_the_whole_document_swaps_it() -> None:
    assert applied({"op": "replace", "path": "", "value": {"new": 1}}, {"op": "add", "path": "/b", "value": 2}) == {
        "new": 1,
        "b": 2,
    }


def test_copies_may_grow_a_document_only_so_far() -> None:
    grow = [{"op": "copy", "from": "/list", "path": "/list/-"}] * 3
    assert len(applied(*grow)["list"]) == 6
    with pytest.raises(PatchDoesNotApply, match="accumulated size increase of copy is 22, exceeding the limit 20"):
        applied(*grow, max_copy_bytes=20)


def test_a_patch_can_be_applied_again_after_its_result_was_changed() -> None:
    patch = decode([{"op": "add", "path": "/a", "value": {"b": []}}])
    patch.apply({})["a"]["b"].append(1)
    assert patch.apply({}) == {"a": {"b": []}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"op": "add"},
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        ([5], "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            [{"op": "add", "path": 5}],
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
        ),
    ],
)
def test_a_body_that_is_no_patch_is_malformed(body: Any, message: str) -> None:
    with pytest.raises(MalformedPatch) as refusal:
        decode(body)
    assert str(refusal.value) == message


def test_lenient_decoding_has_its_own_words_and_no_strict_errors() -> None:
    with pytest.raises(MalformedPatch, match=r"^json: cannot unmarshal object into Go value of type jsonpatch\.Patch$"):
        decode({}, strict=False)
    assert decode([{"op": "test", "path": "", "colour": 1}], strict=False).strict_errors == ()


def test_strict_decoding_names_unknown_fields() -> None:
    patch = decode([{"op": "test", "path": "/a"}, {"op": "test", "Path": "/a", "x": 1}])
    assert patch.strict_errors == (
        'json patch unknown field "[1].Path"',
        'json patch unknown field "[1].x"',
    )


def test_null_is_a_patch_without_operations() -> None:
    assert decode(None).apply({"a": 1}) == {"a": 1}


def test_a_patch_has_at_most_ten_thousand_operations() -> None:
    decode([{"op": "test", "path": "/a"}] * 10_000)
    with pytest.raises(TooManyOperations, match="maximum operations in a JSON patch is 10000, got 10001"):
        decode([{"op": "test", "path": "/a"}] * 10_001)


def test_a_value_that_nests_too_deep_is_malformed() -> None:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    with pytest.raises(MalformedPatch, match="exceeded max depth"):
        decode([{"op": "add", "path": "/a", "value": value}])


SCALARS = st.sampled_from([1, 2, "x", True])
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("ab~/"), v, max_size=3), max_leaves=8
)
DOCUMENTS = st.dictionaries(st.sampled_from("ab~/"), VALUES, max_size=3)


def places(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a document, the root left out."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [path for key in keys for path in [(*prefix, key), *places(value[key], (*prefix, key))]]


def pointer(path: tuple[Any, ...]) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def model(value: Any, path: tuple[Any, ...], change: str, new: Any) -> Any:
    """The document rebuilt with one place changed."""
    if len(path) > 1:
        inner = model(value[path[0]], path[1:], change, new)
        if isinstance(value, dict):
            return {key: inner if key == path[0] else part for key, part in value.items()}
        return [inner if i == path[0] else part for i, part in enumerate(value)]
    if isinstance(value, dict):
        rest = {key: part for key, part in value.items() if key != path[0]}
        return rest if change == "remove" else {**rest, path[0]: new}
    head, tail = value[: path[0]], value[path[0] :]
    return {"add": [*head, new, *tail], "replace": [*head, new, *tail[1:]], "remove": [*head, *tail[1:]]}[change]


@given(
    DOCUMENTS,
    st.lists(st.tuples(st.sampled_from(["add", "replace", "remove"]), VALUES, st.integers(0, 50)), max_size=5),
)
def test_a_run_of_operations_equals_a_rebuilt_document(document: Any, steps: list[tuple[str, Any, int]]) -> None:
    expected, operations = document, []
    for change, value, pick in steps:
        if not (paths := places(expected)):
            break
        path = paths[pick % len(paths)]
        expected = model(expected, path, change, value)
        operations.append({"op": change, "path": pointer(path), "value": value})
        operations.append({"op": "test", "path": "", "value": expected})
    assert decode(operations).apply(deepcopy(document)) == expected
