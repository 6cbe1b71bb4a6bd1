from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject, labels_in
from pilothouse.machinery.objects import labels_of

CODEC = ObjectCodec("Thing", "v1", lambda obj: {})
TEXTS = st.text(st.sampled_from('ab"{}\\:,é'), max_size=12)
LABELS = st.none() | st.dictionaries(TEXTS | st.just("labels"), TEXTS | st.none() | st.dictionaries(TEXTS, TEXTS))
NAMES = ["name", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS | st.just('x","labels":{'),
        "generation": st.integers(0, 9),
        "labels": LABELS,
        "annotations": LABELS,
        "finalizers": st.lists(TEXTS),
        "ownerReferences": st.lists(st.dictionaries(st.sampled_from(["labels", "uid"]), LABELS)),
    },
)


@given(METADATA, st.booleans(), LABELS, st.permutations(NAMES))
def test_labels_are_read_as_a_parser_reads_them(
    metadata: dict[str, object], at_the_top: bool, other: object, order: list[str]
) -> None:
    """In whatever order another server may have stored the metadata."""
    shuffled = dict(sorted(metadata.items(), key=lambda item: order.index(item[0])))
    obj = {"kind": "Thing", "apiVersion": "v1", "metadata": shuffled} | ({"labels": other} if at_the_top else {})
    value = orjson.dumps(obj)
    found = labels_in(value, CODEC.type_prefix)
    assert found is None or found == labels_of(obj)
    assert StoredObject(Entry("/k", value, 1, 1), CODEC).read_labels() == labels_of(obj)


@pytest.mark.parametrize(
    ("metadata", "labels"),
    [
        ({"name": "a", "uid": "u", "labels": {"app": "web"}, "annotations": {"labels": "x"}}, {"app": "web"}),
        ({"name": "a", "uid": "u", "labels": {}}, {}),
        ({"name": "a", "uid": "u", "managedFields": [{"fieldsV1": {"f:labels": {}}}]}, {}),
    ],
)
def test_no_parser_is_needed_for_what_this_server_stores(metadata: dict[str, object], labels: dict[str, str]) -> None:
    assert labels_in(CODEC.encode({"metadata": metadata, "spec": {"a": 1}}), CODEC.type_prefix) == labels
