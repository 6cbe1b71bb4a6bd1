"""The fields that the creator of an object owns."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.apply.atoms import DEDUCED, atom_of
from pilothouse.machinery.apply.compare import compare
from pilothouse.machinery.apply.fieldset import difference, of_fields, recursive_difference, union
from pilothouse.machinery.apply.first_fields import FirstFields
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types

UNOWNED = of_fields("apiVersion", "kind", "metadata", "metadata.name", "metadata.uid")
POD = types.of(GroupVersionKind("", "v1", "Pod"))
CONTAINER = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
OBJECTS: list[Json] = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}},
    {"metadata": {"name": "p", "uid": "u", "labels": {"b": "1", "a": "2"}}, "spec": {"containers": None}},
    {"metadata": {"annotations": {}}, "spec": {"containers": [CONTAINER, CONTAINER], "nodeName": "n"}, "status": {}},
    {"metadata": {}, "spec": None, "status": {"phase": "Running", "conditions": [{"type": "Ready"}]}},
    {},
]


@pytest.mark.parametrize("new", OBJECTS)
@pytest.mark.parametrize("ignored", [{}, of_fields("status")])
def test_they_are_all_that_differs_from_the_empty_object_without_what_nobody_owns(new: Json, ignored: Json) -> None:
    assert POD is not None
    empty: Any = POD.fit({})
    for atom, old in ((atom_of(POD.node), empty), (DEDUCED, {"metadata": {}})):
        change = compare(atom, old, new)
        wanted = difference(recursive_difference(union(change.modified, change.added), ignored), UNOWNED)
        found = FirstFields(atom, old, unowned=UNOWNED, ignored=ignored)(new)
        assert (found, list(found)) == (wanted, list(wanted))
