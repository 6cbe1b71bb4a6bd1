"""Whatever a request looks like: what is done is what was authorized, with the same verb, in the same place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from whole_server import whole_server

from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERBS = {
    "get": "get",
    "list": "list",
    "watch": "watch",
    "create": "create",
    "update": "update",
    "patch": "update",
    "delete": "delete",
    "deletecollection": "delete_collection",
}
"""From what is authorized to what the storage is asked to do."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "WATCH", "get"]
PIECES = ["namespaces", "ateam", "zteam", "secrets", "pods", "nodes", "watch", "proxy", "status", "finalize", "a", ""]
QUERIES = ["watch", "watch=", "watch=1", "watch=0", "watch=0&watch=1", "watch=FALSE", "Watch=1", "watch=x"]
QUERIES += ["fieldSelector=metadata.name%3Da", "fieldSelector=metadata.namespace%3Dzteam", "watch=1;watch=0"]
ENDS = "timeoutSeconds=-1&dryRun=All"
OURS = "/api/v1/namespaces/ateam"


@dataclass
class Record:
    """What the user `tester` was asked about, and what the storages were then asked to do for him."""

    authorized: list[Attributes] = field(default_factory=list)
    done: list[tuple[str, RequestContext, str]] = field(default_factory=list)

    async def authorize(self, attributes: Attributes) -> Answer:
        if attributes.user.name == "tester":
            self.authorized.append(attributes)
        return Answer(Decision.ALLOW)

    def of(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        async def recorded(store: RegistryStore, ctx: RequestContext, *args: Any, **options: Any) -> Any:
            if ctx.user.name == "tester":
                self.done.append((method.__name__, ctx, _name_in(args)))
            return await method(store, ctx, *args, **options)

        return recorded

    def take(self) -> tuple[list[Attributes], list[tuple[str, RequestContext, str]]]:
        taken = self.authorized, self.done
        self.authorized, self.done = [], []
        return taken


def _name_in(args: tuple[Any, ...]) -> str:
    """The name that is asked for, also where it is a selector: of a watch of one object."""
    if not args or isinstance(args[0], str):
        return args[0] if args else ""
    selector = getattr(args[0], "field_selector", None)
    return selector.requires_exact_match("metadata.name") or "" if selector is not None else ""


@pytest.fixture(scope="module")
def record() -> Iterator[Record]:
    record = Record()
    with pytest.MonkeyPatch.context() as patch:
        for verb in set(VERBS.values()):
            patch.setattr(RegistryStore, verb, record.of(getattr(RegistryStore, verb)))
        patch.setattr(AlwaysAllow, "authorize", lambda _, attributes: record.authorize(attributes))
        yield record


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(record: Record, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    tokens = tmp_path_factory.mktemp("verbs") / "tokens.csv"
    tokens.write_text("known,tester,tester\n")
    async with whole_server(authorization_mode="AlwaysAllow", token_auth_file=tokens) as server:
        for namespace in ("ateam", "zteam"):
            await server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            await server.request("POST", f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "a"}})
        record.take()
        yield replace(server, token="known")


def check(record: Record) -> None:
    authorized, done = record.take()
    if not done:
        return
    (asked,) = authorized
    verb, ctx, name = done[0]
    assert verb == VERBS[asked.verb]
    assert ctx.resource.resource == asked.resource
    # Of what lies in no namespace, only a namespace itself may be authorized in one.
    assert asked.namespace in (ctx.namespace, name if asked.resource == "namespaces" else ctx.namespace)
    if asked.verb in ("get", "update", "patch", "delete"):
        assert name == asked.name


paths = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(lambda parts: "/".join(["/api/v1", *parts]))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(method=st.sampled_from(METHODS), path=paths, query=st.sampled_from(["", *QUERIES]))
@example(method="GET", path="/api/v1/proxy/namespaces/ateam/secrets", query="")
@example(method="GET", path="/api/v1/namespaces/ateam/namespaces/zteam", query="")
@example(method="GET", path="/api/v1/watch/namespaces/ateam/secrets/a/status", query="")
@example(method="DELETE", path="/api/v1/namespaces/ateam/namespaces", query="")
@example(method="GET", path="/api/v1/watch/namespaces/ateam", query="")
async def test_what_was_authorized_is_what_is_done(
    api: API, record: Record, method: str, path: str, query: str
) -> None:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    body = {"metadata": {"name": "a"}} if method in ("POST", "PUT", "PATCH") else None
    await api.request(method, f"{path}?{query}&{ENDS}", body, media=media)
    check(record)


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", f"{OURS}/secrets", "list"),
        ("GET", f"{OURS}/secrets?watch", "watch"),
        ("GET", f"{OURS}/secrets?watch=0&watch=1", "list"),
        ("GET", "/api/v1/watch/namespaces/ateam/secrets", "watch"),
        ("GET", "/api/v1/watch/namespaces/ateam/secrets/a?watch=0", "watch"),
        ("GET", f"{OURS}/secrets/a?watch=1", "get"),
        ("GET", OURS, "get"),
        ("POST", f"{OURS}/secrets", "create"),
        ("PUT", f"{OURS}/secrets/a", "update"),
        ("PATCH", f"{OURS}/secrets/a", "patch"),
        ("DELETE", f"{OURS}/secrets/a", "delete"),
        ("DELETE", f"{OURS}/secrets?watch=1", "deletecollection"),
    ],
)
async def test_every_verb_is_done(api: API, record: Record, method: str, path: str, verb: str) -> None:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    body = {"metadata": {"name": "a"}} if method in ("POST", "PUT", "PATCH") else None
    await api.request(method, path + ("&" if "?" in path else "?") + ENDS, body, media=media)
    assert [asked.verb for asked in record.authorized] == [verb]
    assert [done[0] for done in record.done][:1] == [VERBS[verb]]
    check(record)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/proxy/namespaces/ateam/secrets",
        "/api/v1/proxy/namespaces/ateam/secrets/a",
        "/api/v1/proxy/secrets",
        "/api/v1/proxy/nodes/a",
        "/api/v1/namespaces/ateam/namespaces",
        "/api/v1/namespaces/ateam/namespaces/zteam",
        "/api/v1/namespaces/ateam/namespaces/zteam/status",
        "/api/v1/watch/namespaces/ateam/namespaces/zteam",
        "/api/v1/watch/namespaces/ateam/pods/a/status",
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_paths_that_upstream_does_not_have_are_not_there(
    api: API, record: Record, method: str, path: str
) -> None:
    answer = await api.request(method, f"{path}?{ENDS}")
    assert (answer.status, record.take()[1]) == (404, [])
    assert answer.json["message"] == "the server could not find the requested resource"
