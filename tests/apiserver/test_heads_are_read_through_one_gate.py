"""A head may be a megabyte long, and most of it is interpreted on the event loop, before anybody knows whose it is.

The source is read: `Request.header` and `Request.param` return a bounded prefix. Everything that reads more of a head
stands in the tables below, with the reason why it cannot take long, or is called by `carry` or `by_size` only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pilothouse
from pilothouse.apiserver import Request
from pilothouse.apiserver.http import LONGEST_READ

PACKAGE = Path(pilothouse.__file__).parent
UNBOUNDED = frozenset({"headers", "query", "query_string", "whole_header", "whole_param"})

READERS = {
    "the gate itself": ("apiserver/http",),
    "looks at the names of fields, once for each": (
        "apiserver/authn/request_header",
        "apiserver/proxy/upgrades",
        "apiserver/serving/upgrade",
        "console/guard",
        "console/forwarding",
        "kube/core/pods/connect/forwarding",
        "nodes/kubelet/spdy_sessions",
    ),
    "reads a bounded number of the entries of a list": ("aggregator/proxy/headers", "nodes/kubelet/port_forward"),
    "looks for a word, compares, cuts or passes on": (
        "apiserver/audit/context",
        "apiserver/authn/bearer",
        "apiserver/endpoints/negotiation",
        "apiserver/filters/internal_error",
        "apiserver/filters/recent_requests",
        "apiserver/filters/request_metrics",
        "apiserver/filters/timeout",
        "apiserver/server/health",
        "bench/request_log",
        "nodes/kubelet/commands",
        "nodes/kubelet/routes",
    ),
    "parses beside the loop what is long": (
        "aggregator/proxy/handler",
        "apiserver/endpoints/connect",
        "apiserver/endpoints/options",
        "apiserver/filters/impersonation",
        "apiserver/filters/request_info",
        "apiserver/request_info",
        "kube/core/pods/connect/storages",
    ),
    "only with --testing": ("bench/faults/filter",),
    "its request is another's": (
        "client/rest/connect",
        "client/rest/http_transport",
        "controlplane/loopback",
    ),
}
"""Modules that read whole heads, by the reason why that takes no time."""

CARRIED = frozenset(
    {
        "_wanted_ports",
        "create_options",
        "delete_options",
        "list_options",
        "options_of",
        "patch_options",
        "reencoded",
        "request_info",
        "review_spec",
        "update_options",
        "wanted_user",
    }
)
"""Functions that parse whole heads. They are given to `carry` or `by_size`, and called by nobody."""
ON_THE_LOOP = {
    ("request_info", "apiserver/filters/request_info"),  # without a query
    ("request_info", "aggregator/download"),  # of a request that the server makes
}


def test_whole_heads_are_read_only_where_that_takes_no_time() -> None:
    assert set(_readers()) == {module for modules in READERS.values() for module in modules}


def test_parsers_of_whole_heads_are_never_called_on_the_loop() -> None:
    calls = [
        (node.func.id, module)
        for module, tree in _modules(CARRIED)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CARRIED
    ]
    assert set(calls) == ON_THE_LOOP


@pytest.mark.parametrize("length", [1, LONGEST_READ, LONGEST_READ + 1, 1_000_000])
def test_headers_and_parameters_are_read_up_to_a_bound(length: int) -> None:
    async def no_body(limit: int) -> bytes:
        return b""

    request = Request("GET", "/", "a=" + "b" * length, [(b"c", b"d" * length)], no_body)
    assert len(request.param("a")) == len(request.header(b"c")) == min(length, LONGEST_READ)
    assert len(request.whole_param("a")) == len(request.whole_header(b"c")) == length


def _readers() -> Iterator[str]:
    for module, tree in _modules(UNBOUNDED):
        reads = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in UNBOUNDED)
        if module == "apiserver/http" or any(_is_request(node.value) for node in reads):
            yield module


def _is_request(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.endswith("request")


def _modules(names: frozenset[str]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules whose text contains at least one of the names."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if any(name in (text := path.read_text()) for name in names):
            yield str(path.relative_to(PACKAGE).with_suffix("")), ast.parse(text)
