"""The indexer against a model, and the lister on top of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.client.cache.indexer import NAMESPACE_INDEX, CompactIndexer, Indexer, Lister, namespace_index
from pilothouse.client.cache.keys import (
    DeletedFinalStateUnknown,
    deletion_handling_key,
    last_known_state,
    meta_namespace_key,
    split_meta_namespace_key,
)
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of


def obj(name: str, namespace: str = "", **labels: str) -> Json:
    meta: Json = {"name": name, "labels": labels}
    return {"metadata": meta | ({"namespace": namespace} if namespace else {})}


def by_tag(found: Json) -> list[str]:
    return list(found.get("tags", ""))


TAGGED = st.tuples(st.sampled_from("abcd"), st.text("xyz", max_size=3))


@given(st.lists(st.one_of(TAGGED, st.sampled_from("abcd")), max_size=30), st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_index_is_what_indexing_everything_anew_would_give(
    steps: list[tuple[str, str] | str], late: bool
) -> None:
    indexer = Indexer({} if late else {"tag": by_tag})
    model: dict[str, Json] = {}
    for step in steps:
        if isinstance(step, tuple):
            name, tags = step
            model[name] = {**obj(name), "tags": tags}
            indexer.add(model[name])
        else:
            model.pop(step, None)
            indexer.delete(step)
    if late:
        indexer.add_indexers({"tag": by_tag})
    expected = {tag: sorted(k for k, v in model.items() if tag in v["tags"]) for tag in "xyz"}
    assert {tag: indexer.index_keys("tag", tag) for tag in "xyz"} == expected
    assert sorted(indexer.index_values("tag")) == [tag for tag, keys in expected.items() if keys]
    assert sorted(indexer.list_keys()) == sorted(model)
    for tag in "xyz":
        assert sorted(found["metadata"]["name"] for found in indexer.by_index("tag", tag)) == expected[tag]


def test_an_index_finds_what_shares_a_value_with_an_object_once() -> None:
    indexer = Indexer({"tag": by_tag})
    indexer.replace([{**obj("a"), "tags": "xy"}, {**obj("b"), "tags": "z"}])
    assert [found["metadata"]["name"] for found in indexer.index("tag", {"tags": "xy"})] == ["a"]


def test_a_name_for_an_index_can_be_given_once() -> None:
    with pytest.raises(ValueError, match="conflict"):
        Indexer({"tag": by_tag}).add_indexers({"tag": by_tag})


def test_replacing_forgets_what_was_there() -> None:
    indexer = Indexer({"tag": by_tag})
    indexer.add({**obj("a"), "tags": "x"})
    indexer.replace([{**obj("b"), "tags": "y"}])
    assert indexer.list_keys() == ["b"]
    assert indexer.index_values("tag") == ["y"]
    assert indexer.get(obj("b")) == indexer.get_by_key("b")


def test_keys_name_objects_with_and_without_a_namespace() -> None:
    assert meta_namespace_key(obj("a", "ns")) == "ns/a"
    assert meta_namespace_key(obj("a")) == "a"
    assert str(split_meta_namespace_key("ns/a")) == "ns/a"
    assert split_meta_namespace_key("a").namespace == ""
    with pytest.raises(ValueError, match="unexpected key format"):
        split_meta_namespace_key("a/b/c")
    tombstone = DeletedFinalStateUnknown("ns/a", obj("a", "ns"))
    assert deletion_handling_key(tombstone) == deletion_handling_key(obj("a", "ns")) == "ns/a"
    assert last_known_state(tombstone) == last_known_state(obj("a", "ns"))


@pytest.mark.parametrize("indexed", [True, False])
def test_a_lister_selects_by_namespace_and_labels(indexed: bool) -> None:
    indexer = Indexer({NAMESPACE_INDEX: namespace_index} if indexed else {})
    indexer.replace([obj("a", "one", app="x"), obj("b", "one", app="y"), obj("a", "two", app="x")])
    lister = Lister(indexer, GroupResource("", "pods"))

    def names(objects: list[Json]) -> list[str]:
        return sorted(map(meta_namespace_key, objects))

    assert names(lister.list()) == ["one/a", "one/b", "two/a"]
    assert names(lister.list("app=x")) == ["one/a", "two/a"]
    assert names(lister.namespace("one").list()) == ["one/a", "one/b"]
    assert names(lister.namespace("one").list("app in (x, z)")) == ["one/a"]
    assert lister.namespace("two").get("a") == obj("a", "two", app="x")
    with pytest.raises(NotFound, match='pods "b" not found'):
        lister.namespace("two").get("b")


NAMES, LABELS = st.sampled_from("abcd"), st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))
CHANGES = st.lists(st.tuples(st.sampled_from(["update", "delete", "replace"]), NAMES, st.sampled_from("np"), LABELS))


@given(CHANGES)
def test_a_compact_indexer_reads_as_an_indexer(changes: list[tuple[str, str, str, dict[str, str]]]) -> None:
    by_label = {"label": lambda obj: list(labels_of(obj).values())}
    plain, compact = Indexer(by_label), CompactIndexer(by_label)
    for change, name, namespace, labels in changes:
        changed: Json = {"metadata": {"name": name, "namespace": namespace, "labels": labels}}
        for indexer in (plain, compact):
            if change == "update":
                indexer.add(changed)
            elif change == "delete":
                indexer.delete(f"{namespace}/{name}")
            else:
                indexer.replace([changed])
        assert (compact.list(), compact.list_keys(), len(compact)) == (plain.list(), plain.list_keys(), len(plain))
        assert compact.index_values("label") == plain.index_values("label")
        assert compact.get(changed) == plain.get(changed)
        for value in "12":
            assert compact.index_keys("label", value) == plain.index_keys("label", value)
            found = compact.containing([f'"x":"{value}"'.encode()], index="label", value=value)
            assert sorted(map(meta_namespace_key, found)) == sorted(
                meta_namespace_key(one) for one in plain.by_index("label", value) if labels_of(one).get("x") == value
            )
    for indexer in (plain, compact):
        indexer.add_indexers({"namespace": namespace_index})
    assert compact.index_values("namespace") == plain.index_values("namespace")
    if len(compact):
        [first, *_] = compact.list()
        first["metadata"]["name"] = "changed"  # a copy
        assert compact.list() == plain.list()
