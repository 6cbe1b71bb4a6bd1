"""Paths, query parameters, selectors, continue tokens and media types that nobody would send in good faith."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from fuzz_budget import budget
from fuzz_verdicts import bounded, check
from hypothesis import given
from hypothesis import strategies as st
from whole_server import CONFIG_MAPS

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = ["", "0", "1", "-1", "x", "1.5", "0x1", "9" * 30, "9" * 5000, " 1", "1_0", "१", "\0"]
BOOLEANS = ["", "true", "false", "1", "0", "x", "TRUE", "\0"]
PARAMETERS = {
    "limit": NUMBERS,
    "resourceVersion": [number for number in NUMBERS if number != "9" * 30] + ["18446744073709551616"],
    "resourceVersionMatch": ["", "Exact", "NotOlderThan", "x"],
    "gracePeriodSeconds": NUMBERS,
    "timeoutSeconds": ["1", "-1", "x", "9" * 30],
    "allowWatchBookmarks": BOOLEANS,
    "sendInitialEvents": BOOLEANS,
    "dryRun": ["", "All", "x"],
    "propagationPolicy": ["", "Orphan", "x"],
    "fieldManager": ["", "m", "é", "\0", "m" * 200],
    "fieldValidation": ["", "Strict", "Warn", "Ignore", "x"],
    "force": BOOLEANS,
    "pretty": BOOLEANS,
    "includeObject": ["", "None", "Metadata", "Object", "x"],
    "orphanDependents": BOOLEANS,
}
SELECTOR = st.lists(st.sampled_from([*"ab=!,()<> \\/.\0é", "in", "notin", "metadata.name", "==", "!="]), max_size=12)
ACCEPT = st.lists(
    st.sampled_from(
        [
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
            "*/*",
            "application/*",
            "text/x",
            ";as=Table",
            ";as=PartialObjectMetadata",
            ";as=PartialObjectMetadataList",
            ";as=X",
            ";v=v1",
            ";g=meta.k8s.io",
            ";stream=watch",
            ";q=0",
            ";q=x",
            ",",
            ";",
            "=",
            '"',
            "/",
            " ",
            "é",
        ]
    ),
    max_size=6,
).map("".join)
PARAMETER = st.sampled_from(sorted(PARAMETERS)).flatmap(
    lambda name: st.sampled_from(PARAMETERS[name]).map(lambda value: f"{name}={quote(value)}")
)
TOKEN = st.one_of(
    st.text(max_size=20),
    st.binary(max_size=20).map(lambda raw: base64.urlsafe_b64encode(raw).decode()),
    st.sampled_from(
        [
            b"null",
            b"[]",
            b"{}",
            b'{"v":1}',
            b'{"v":"meta.k8s.io/v1","rv":1,"start":5}',
            b'{"v":"meta.k8s.io/v1","rv":"1","start":"a"}',
            b'{"v":"meta.k8s.io/v1","rv":-1,"start":"../../x"}',
        ]
    )
    .map(base64.urlsafe_b64encode)
    .map(bytes.decode),
    st.sampled_from([-1, 0, 1, 1 << 70]).map(
        lambda revision: (
            base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":%d,"start":"default/a\\u0000"}' % revision)
            .decode()
            .rstrip("=")
        )
    ),
)


@budget(200)
@given(query=st.lists(PARAMETER, max_size=4), accept=ACCEPT, method=st.sampled_from(["GET", "DELETE", "POST", "PUT"]))
async def test_no_parameters_confuse_the_server(api: API, query: list[str], accept: str, method: str) -> None:
    body = b"{}" if method in ("POST", "PUT") else None
    for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/none"):
        with bounded(2):
            check(await api.request(method, f"{path}?{'&'.join(query)}&labelSelector=none", body, accept=accept))


@budget(200)
@given(labels=SELECTOR, fields=SELECTOR, token=TOKEN)
async def test_selectors_and_tokens_are_read_or_refused(
    api: API, labels: list[str], fields: list[str], token: str
) -> None:
    selectors = f"labelSelector={quote(''.join(labels))}&fieldSelector={quote(''.join(fields))}"
    for query in (selectors, f"{selectors}&watch=true&timeoutSeconds=-1", f"continue={quote(token)}&limit=1"):
        with bounded(2):
            check(await api.request("GET", f"{CONFIG_MAPS}?{query}"))


LONG = {
    "requirements": "labelSelector=" + "a," * 20_000,
    "values": "labelSelector=a in (" + "b," * 20_000 + ")",
    "parentheses": "labelSelector=" + "(" * 50_000,
    "blanks": "labelSelector=" + "%20" * 50_000 + "!",
    "fields": "fieldSelector=" + "a=b," * 20_000,
    "escapes": "fieldSelector=a=" + "%5C" * 50_000,
    "a token": "continue=" + "A" * 100_000,
    "parameters": "&" * 200_000,
}


@pytest.mark.parametrize("name", LONG)
async def test_long_queries_take_no_longer_than_they_are(api: API, name: str) -> None:
    with bounded(2):
        check(await api.request("GET", f"{CONFIG_MAPS}?{LONG[name]}"))


PARTS = [
    "..",
    ".",
    "",
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "configmaps",
    "pods",
    "nodes",
    "proxy",
    "log",
    "\0",
]
PARTS += ["status", "a:b:c", "https:x:1", "é", "a" * 300, "watch", "openapi", "v3", "readyz", "%2e%2e", "apps", "%"]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "X"]


@budget(250)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=9), method=st.sampled_from(METHODS))
async def test_no_path_leads_astray(api: API, parts: list[str], method: str) -> None:
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    target = quote("/" + "/".join(parts))
    with bounded(2):
        answer = await api.request(method, f"{target}?timeoutSeconds=-1", body)
    if method == "HEAD":
        assert (answer.body, answer.status < 500) == (b"", True), answer
    else:
        check(answer)
