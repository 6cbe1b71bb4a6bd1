"""Paths and queries, and what they ask for."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.request_info import RequestInfo, request_info


def info(method: str, target: str) -> RequestInfo:
    path, _, query = target.partition("?")

    async def no_body(limit: int) -> bytes:
        return b""

    return request_info(Request(method, path, query, [], no_body))


@pytest.mark.parametrize(
    ("method", "target", "verb", "where"),
    [
        ("GET", "/api/v1/namespaces/ns/pods", "list", ("", "ns", "pods", "", "")),
        ("GET", "/api/v1/namespaces/ns/pods/p", "get", ("", "ns", "pods", "p", "")),
        ("HEAD", "/api/v1/namespaces/ns/pods/p", "get", ("", "ns", "pods", "p", "")),
        ("GET", "/api/v1/namespaces/ns/pods/p/status", "get", ("", "ns", "pods", "p", "status")),
        ("POST", "/apis/apps/v1/namespaces/ns/deployments", "create", ("apps", "ns", "deployments", "", "")),
        ("PUT", "/apis/apps/v1/namespaces/ns/deployments/d", "update", ("apps", "ns", "deployments", "d", "")),
        ("PATCH", "/api/v1/nodes/n", "patch", ("", "", "nodes", "n", "")),
        ("DELETE", "/api/v1/nodes/n", "delete", ("", "", "nodes", "n", "")),
        ("DELETE", "/api/v1/nodes", "deletecollection", ("", "", "nodes", "", "")),
        ("GET", "/api/v1/namespaces/ns", "get", ("", "ns", "namespaces", "ns", "")),
        ("PUT", "/api/v1/namespaces/ns/finalize", "update", ("", "ns", "namespaces", "ns", "finalize")),
        ("GET", "/api/v1/watch/namespaces/ns/pods", "watch", ("", "ns", "pods", "", "")),
        ("GET", "/api/v1/namespaces/ns/pods?watch", "watch", ("", "ns", "pods", "", "")),
        ("GET", "/api/v1/namespaces/ns/pods?watch=false", "list", ("", "ns", "pods", "", "")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp", "list", ("", "", "pods", "p", "")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3D..", "list", ("", "", "pods", "", "")),
    ],
)
def test_a_resource_path_is_taken_apart(method: str, target: str, verb: str, where: tuple[str, ...]) -> None:
    found = info(method, target)
    assert found.is_resource
    assert found.verb == verb
    assert (found.group, found.namespace, found.resource, found.name, found.subresource) == where


@pytest.mark.parametrize("path", ["/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/x/y/z"])
def test_other_paths_ask_for_no_resource(path: str) -> None:
    found = info("GET", path)
    assert not found.is_resource
    assert found.verb == "get"


def test_selectors_are_kept_for_verbs_that_have_them() -> None:
    found = info("GET", "/api/v1/pods?labelSelector=a%3Db&fieldSelector=x%3Dy")
    assert (found.label_selector, found.field_selector) == ("a=b", "x=y")
    assert info("POST", "/api/v1/namespaces/ns/pods?labelSelector=a%3Db").label_selector == ""
