"""Strategic merge patches follow the types' merge keys and strategies, and the directives in the patch."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patch_schemas import TEXT, TEXTS_BY_NAME, kubernetes, listing, struct

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import deep_equal
from pilothouse.machinery.patch import strategic
from pilothouse.machinery.patch.interface import MalformedPatch, PatchDoesNotApply, PatchFailed

ITEM = struct({"name": TEXT, "value": TEXT, "labels": TEXTS_BY_NAME}, name="Item")
THING = struct(
    {
        "items": listing(ITEM, strategies="merge", key="name"),
        "keyless": listing(ITEM, strategies="merge"),
        "replaced": listing(ITEM),
        "tags": listing(TEXT, strategies="merge"),
        "labels": TEXTS_BY_NAME,
        "spec": struct({"type": TEXT, "inner": struct({"type": TEXT}, name="Inner")}, name="Spec"),
        "whole": struct({"a": TEXT}, strategies="replace"),
    }
)


def patched(document: dict[str, Any], patch: dict[str, Any]) -> Any:
    return strategic.apply(deepcopy(document), patch, THING)


def names(*listed: str) -> list[dict[str, str]]:
    return [{"name": name} for name in listed]


def test_objects_are_merged_and_nulls_delete() -> None:
    document = {"labels": {"a": "1", "b": "2"}, "spec": {"type": "x"}}
    patch = {"labels": {"a": None, "c": "3", "d": None}, "spec": None, "new": {"x": None, "y": 1}}
    assert patched(document, patch) == {"labels": {"b": "2", "c": "3"}, "new": {"y": 1}}


def test_elements_with_equal_merge_keys_are_merged_and_new_ones_added() -> None:
    document = {"items": [{"name": "a", "value": "1", "labels": {"x": "1"}}, {"name": "b"}]}
    patch = {"items": [{"name": "a", "labels": {"y": "2"}}, {"name": "c", "value": None}]}
    assert patched(document, patch)["items"] == [
        {"name": "a", "value": "1", "labels": {"x": "1", "y": "2"}},
        {"name": "c", "value": None},
        {"name": "b"},
    ]


def test_lists_without_the_merge_strategy_are_replaced() -> None:
    assert patched({"replaced": names("a")}, {"replaced": names("b")})["replaced"] == names("b")


def test_lists_of_plain_values_become_their_union() -> None:
    assert patched({"tags": ["a", "b"]}, {"tags": ["c", "b"]})["tags"] == ["c", "a", "b"]


def test_plain_values_are_deleted_by_a_parallel_list() -> None:
    document = {"tags": ["a", "b", "c"]}
    assert patched(document, {"$deleteFromPrimitiveList/tags": ["b", "x"]})["tags"] == ["a", "c"]
    patch = {"$deleteFromPrimitiveList/tags": ["a"], "tags": ["d"]}
    assert sorted(patched(document, patch)["tags"]) == ["b", "c", "d"]
    assert patched({}, {"$deleteFromPrimitiveList/tags": ["b"]}) == {}


def test_the_patch_directive_replaces_and_deletes_objects() -> None:
    document = {"labels": {"a": "1"}, "spec": {"type": "x"}}
    assert patched(document, {"labels": {"$patch": "replace", "b": "2"}})["labels"] == {"b": "2"}
    assert patched(document, {"labels": {"$patch": "delete", "b": "2"}})["labels"] == {}
    assert patched(document, {"missing": {"$patch": "delete"}}) == document
    assert patched(document, {"$patch": "replace", "b": "2"}) == {"b": "2"}


def test_the_patch_directive_deletes_and_replaces_elements() -> None:
    document = {"items": names("a", "b", "c")}
    assert patched(document, {"items": [{"name": "b", "$patch": "delete"}]})["items"] == names("a", "c")
    assert patched(document, {"items": [{"$patch": "replace"}, {"name": "z"}]})["items"] == names("z")
    assert patched(document, {"items": [{"$patch": "replace"}]})["items"] == []


def test_directives_are_removed_from_added_values() -> None:
    patch = {"items": [{"name": "a", "$patch": "delete"}, {"name": "b"}], "spec": {"inner": {"$patch": "delete"}}}
    assert patched({}, patch) == {"items": names("b"), "spec": {}}


def test_a_field_with_the_replace_strategy_is_replaced() -> None:
    assert patched({"whole": {"a": "1"}}, {"whole": {"b": None}})["whole"] == {"b": None}


def test_retain_keys_drops_unlisted_keys() -> None:
    document = {"spec": {"type": "x", "inner": {"type": "y"}, "old": 1}}
    patch = {"spec": {"$retainKeys": ["type"], "type": "z"}}
    assert patched(document, patch)["spec"] == {"type": "z"}


def test_retain_keys_must_list_all_patched_keys() -> None:
    for listed in (["other"], "type"):
        with pytest.raises(MalformedPatch, match=r"^invalid patch format of retainKeys$"):
            patched({"spec": {"type": "x"}}, {"spec": {"$retainKeys": listed, "type": "z"}})


@pytest.mark.parametrize(
    ("live", "patch", "order", "expected"),
    [
        ("abc", "", "cab", "cab"),
        ("abc", "d", "dcba", "dcba"),
        ("abxc", "", "ca", "bxca"),
        ("axbyc", "", "cba", "xycba"),
        ("abc", "cd", "acd", "abcd"),
        ("", "ba", "ba", "ba"),
    ],
)
def test_the_element_order_is_set_by_the_patch(live: str, patch: str, order: str, expected: str) -> None:
    document = {"items": names(*live), "tags": list(live)} if live else {}
    change: dict[str, Any] = {"$setElementOrder/items": names(*order), "$setElementOrder/tags": list(order)}
    if patch:
        change |= {"items": names(*patch), "tags": list(patch)}
    result = patched(document, change)
    assert "".join(result["tags"]) == expected
    assert "".join(item["name"] for item in result["items"]) == expected


def test_element_order_may_omit_deleted_elements() -> None:
    patch = {"$setElementOrder/items": names("c", "a"), "items": [{"name": "b", "$patch": "delete"}]}
    assert patched({"items": names("a", "b", "c")}, patch)["items"] == names("c", "a")


def test_a_new_element_takes_the_rank_of_a_deleted_one() -> None:
    patch = {"$setElementOrder/items": names("b", "x"), "items": [{"name": "x"}, {"name": "a", "$patch": "delete"}]}
    assert patched({"items": names("a", "b", "c")}, patch)["items"] == names("b", "c", "x")


def test_an_element_order_for_a_list_that_is_nowhere_is_ignored() -> None:
    assert patched({}, {"$setElementOrder/items": names("a")}) == {}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"items": [{"value": "1"}]}, "map: map[value:1] does not contain declared merge key: name"),
        ({"items": [{"$patch": "delete"}]}, "map: map[$patch:delete] does not contain declared merge key: name"),
        (
            {"items": [{"name": "a", "$patch": "explode"}]},
            "unknown patch type: explode in map: map[$patch:explode name:a]",
        ),
        ({"items": [{"name": "a", "$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"labels": {"$patch": 5}}, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        ({"tags": [{"a": 1}]}, "list element types are not identical: [[t] [map[a:1]]]"),
        ({"tags": ["x", ["y"]]}, "list element types are not identical: [[t] [x [y]]]"),
        ({"keyless": [{"name": "a"}]}, "cannot merge lists without merge key for struct"),
        (
            {"spec": {"other": {"x": 1}}},
            'unable to find api field in struct Spec for the json field "other"',
        ),
        (
            {"labels": {"a": {"x": 1}}},
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            {"$setElementOrder/items": names("b", "a"), "items": names("a", "b")},
            "The order in patch list:\n[map[name:a] map[name:b]]\n doesn't match $setElementOrder list:\n"
            "[map[name:b] map[name:a]]\n",
        ),
        ({"$setElementOrder/items": "a"}, "expected a []interface {}, but received a string"),
        ({"$setElementOrder/items": ["a"]}, "value for key 0 is not a map"),
        ({"$setElementOrder/labels": []}, "expected a []interface {}, but received a map[string]interface {}"),
        ({"$setElementOrder/spec": []}, "expected a []interface {}, but received a map[string]interface {}"),
    ],
)
def test_a_patch_against_the_type_fails_with_upstreams_words(patch: dict[str, Any], message: str) -> None:
    document = {
        "items": names("a"),
        "keyless": names("a"),
        "tags": ["t"],
        "labels": {"a": {"x": 0}},
        "spec": {"other": {"x": 0}},
    }
    with pytest.raises(PatchFailed) as failure:
        patched(document, patch)
    assert str(failure.value) == message


def test_malformed_directives_are_told_from_failures() -> None:
    with pytest.raises(MalformedPatch, match="invalid patch format of primitive list"):
        patched({}, {"$deleteFromPrimitiveList": ["a"]})
    with pytest.raises(MalformedPatch, match="invalid patch format of setElementOrder list"):
        patched({}, {"$setElementOrder": ["a"]})
    with pytest.raises(PatchDoesNotApply, match="lists of lists are not supported"):
        patched({"tags": []}, {"tags": [["a"]]})


def test_a_patch_is_only_read() -> None:
    patch = {"items": [{"name": "a", "labels": {"x": "1"}}], "$setElementOrder/items": names("a")}
    before = deepcopy(patch)
    patched({"items": names("a")}, patch)["items"][0]["labels"]["x"] = "changed"
    assert patch == before


def test_a_pod_template_is_merged_by_the_keys_of_the_real_types() -> None:
    document = {
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {
                "spec": {
                    "containers": [
                        {"name": "c1", "env": [{"name": "A"}, {"name": "B"}], "args": ["x"]},
                        {"name": "c2"},
                    ],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                }
            },
        }
    }
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["one"]},
        "spec": {
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "template": {
                "spec": {
                    "$setElementOrder/containers": names("c2", "c1"),
                    "containers": [
                        {"name": "c1", "env": [{"name": "A", "$patch": "delete"}, {"name": "C"}], "args": ["z"]},
                    ],
                    "volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}],
                }
            },
        },
    }
    result = strategic.apply(document, patch, kubernetes(GroupVersionKind("apps", "v1", "Deployment")))
    assert result["spec"]["strategy"] == {"type": "Recreate"}
    assert result["spec"]["template"]["spec"] == {
        "containers": [{"name": "c2"}, {"name": "c1", "env": names("C", "B"), "args": ["z"]}],
        "volumes": [{"name": "v", "configMap": {"name": "m"}}],
    }


NAMES = st.sampled_from("abcd")
TAGS = st.lists(st.sampled_from("wxyz"), unique=True, min_size=1, max_size=3)
LABELS = st.dictionaries(st.sampled_from("pq"), st.sampled_from(["1", "2"]), max_size=2)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"value": st.sampled_from("12"), "labels": LABELS}),
    unique_by=lambda item: str(item["name"]),
    min_size=1,
    max_size=3,
)
DOCUMENTS = st.fixed_dictionaries({}, optional={"items": ITEMS, "tags": TAGS, "labels": LABELS})
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "items": ITEMS | ITEMS.map(lambda items: [{**items[0], "$patch": "delete"}, *items[1:]]) | st.none(),
        "tags": TAGS | st.none(),
        "labels": st.dictionaries(st.sampled_from("pq"), st.sampled_from(["1"]) | st.none()) | st.none(),
    },
)


@given(DOCUMENTS, PATCHES)
def test_strategic_patch_is_idempotent(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = patched(document, patch)
    assert deep_equal(patched(once, patch), once)


@given(DOCUMENTS, DOCUMENTS)
def test_after_a_patch_every_part_of_it_is_in_the_document(document: dict[str, Any], patch: dict[str, Any]) -> None:
    result = patched(document, patch)
    assert set(patch.get("tags", [])) <= set(result.get("tags", []))
    assert set(document.get("tags", [])) <= set(result.get("tags", []))
    assert patch.get("labels", {}).items() <= result.get("labels", {}).items()
    by_name = {item["name"]: item for item in result.get("items", [])}
    assert all(item.keys() <= by_name[item["name"]].keys() for item in patch.get("items", []))
    assert [name for name in by_name if name in names_of(patch)] == names_of(patch)


def names_of(document: dict[str, Any]) -> list[str]:
    return [item["name"] for item in document.get("items", [])]
