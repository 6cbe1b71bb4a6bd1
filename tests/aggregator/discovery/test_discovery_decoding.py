"""Documents of other servers are read strictly, because all clients read them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_services import group

from pilothouse.aggregator.discovery.service import MalformedDiscovery, decode_group_list, decode_resource_list
from pilothouse.machinery.names import GroupVersion

A_V1 = GroupVersion("a.io", "v1")


def test_what_a_document_says_beyond_the_known_fields_is_left_out() -> None:
    document = {"items": [group("a.io", v1=["things"])]}
    document["items"][0]["versions"][0]["resources"][0] |= {"unknown": 1, "shortNames": ["t"], "responseKind": None}
    (resource,) = decode_group_list(orjson.dumps(document))[A_V1]["resources"]
    assert resource == {
        "resource": "things",
        "responseKind": {"group": "", "version": "", "kind": ""},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get"],
        "shortNames": ["t"],
    }


@pytest.mark.parametrize(
    "document",
    [
        b"<html>",
        [],
        {"items": {}},
        {"items": [1]},
        {"items": [{"metadata": {"name": 1}, "versions": [{"version": "v1"}]}]},
        {"items": [{"metadata": {"name": "a.io"}, "versions": [{"version": 1}]}]},
        {"items": [{"metadata": {"name": "a.io"}, "versions": [{"version": "v1", "resources": [{"verbs": "get"}]}]}]},
        {"items": [{"metadata": {"name": "a.io"}, "versions": [{"version": "v1", "resources": [{"scope": "x"}]}]}]},
    ],
)
def test_a_document_that_clients_could_not_decode_is_refused(document: Any) -> None:
    with pytest.raises(MalformedDiscovery):
        decode_group_list(document if isinstance(document, bytes) else orjson.dumps(document))


def test_a_list_of_resources_has_its_subresources_inside_their_resource() -> None:
    resources = [
        {"name": "things", "namespaced": True, "kind": "Thing", "verbs": ["get"], "singularName": "thing"},
        {"name": "things/status", "namespaced": True, "kind": "Thing", "verbs": ["update"]},
        {"name": "orphans/log", "namespaced": False, "kind": "", "group": "x", "verbs": []},
    ]
    document = decode_resource_list(orjson.dumps({"resources": resources}), A_V1)[A_V1]
    things, orphans = document["resources"]
    assert (things["resource"], things["scope"], things["singularResource"]) == ("things", "Namespaced", "thing")
    kind = {"group": "", "version": "", "kind": "Thing"}
    assert things["subresources"] == [{"subresource": "status", "responseKind": kind, "verbs": ["update"]}]
    assert (orphans["resource"], orphans["scope"], orphans["responseKind"]["kind"]) == ("orphans", "Cluster", "")
    assert orphans["subresources"][0]["responseKind"] == {"group": "", "version": "", "kind": ""}


def test_a_subresource_of_another_scope_than_its_resource_is_refused() -> None:
    resources = [{"name": "things", "namespaced": True}, {"name": "things/status", "namespaced": False}]
    with pytest.raises(MalformedDiscovery):
        decode_resource_list(orjson.dumps({"resources": resources}), A_V1)
