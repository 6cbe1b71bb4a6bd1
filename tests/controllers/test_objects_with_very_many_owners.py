"""An object may name as many owners as fit into it, and each of them may turn out not to exist."""

from __future__ import annotations

import pytest

from pilothouse.controllers.garbagecollector.graph import GraphNode, ObjectReference, ObjectState, partition
from pilothouse.machinery.objects import Json

NAMESPACE = "default"


def owned(count: int) -> GraphNode:
    owners = [_owner("p", uid=f"u{at}") for at in range(count)] + [_owner("other name", uid="u0")]
    state = ObjectState.of({"metadata": {"name": "a", "ownerReferences": owners}})
    return GraphNode(ObjectReference("ConfigMap", "v1", NAMESPACE, "a", "uid"), state)


def _owner(name: str, *, uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}


@pytest.mark.parametrize("count", [2, 40_000])
def test_each_owner_is_found_among_all(count: int) -> None:
    node = owned(count)
    found = partition([node], ObjectReference("Pod", "v1", NAMESPACE, "p", "u0"))
    assert (found.matching, found.nonmatching) == ([node], [node])
    found = partition([node], ObjectReference("Pod", "v1", NAMESPACE, "p", "u1"))
    assert (found.matching, found.nonmatching) == ([node], [])
    found = partition([node], ObjectReference("Pod", "v1", NAMESPACE, "p", "unknown"))
    assert (found.matching, found.nonmatching) == ([], [])


def test_looking_up_all_owners_takes_linear_time() -> None:
    """It took their square: for 40,000 owners more than a minute, of which each step held the event loop."""
    node = owned(40_000)
    for at in range(40_000):
        partition([node], ObjectReference("Pod", "v1", NAMESPACE, "p", f"u{at}"))
    assert len(node.references_to("u7")) == 1
