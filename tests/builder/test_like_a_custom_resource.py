"""A declared resource answers as a CustomResourceDefinition of the same schema does, request by request."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from patience import PATIENCE

from pilothouse.builder import AGE, APIServer, Column, ListMap, Minimum, Resource, Rule, Scale
from pilothouse.testing import BlockingAPI

OURS, THEIRS = "boats.example.com", "ships.example.com"
server = APIServer(group=OURS)


@dataclass
class Mast:
    name: str
    height: Annotated[int, Minimum(1)] = 0


@server.resource(version="v1", short_names=["bo"], categories=["vessels"])
class Boat(Resource):
    """A boat floats."""

    @dataclass
    class Spec:
        color: Literal["red", "blue", ""] = ""
        crew: int = 2
        replicas: int = 0
        masts: Annotated[list[Mast], ListMap("name")] = field(default_factory=list)

    @dataclass
    class Status:
        replicas: int = 0
        afloat: bool = False

    columns = (Column("Color", ".spec.color"), Column("Crew", ".spec.crew", priority=1), AGE)
    selectable_fields = (".spec.color",)
    rules = (Rule("!has(self.spec) || self.spec.crew < 100", message="too many hands"),)
    scale = Scale()


@pytest.fixture(scope="module")
def api() -> Iterator[BlockingAPI]:
    with server.in_test() as api:
        definition = json.loads(json.dumps(server.kinds[0].definition()).replace(OURS, THEIRS))
        definition["spec"]["names"]["shortNames"] = ["sh"]
        definition["metadata"] = {"name": f"boats.{THEIRS}"}
        del definition["status"]
        answer = api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert answer.status == 201, answer.json
        while api.request("GET", f"/apis/{THEIRS}/v1/boats").status != 200:
            pass
        yield api


def boat(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{OURS}/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec}


ALL, IN_DEFAULT = f"/apis/{OURS}/v1/boats", f"/apis/{OURS}/v1/namespaces/default/boats"
MERGE, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
REQUESTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", IN_DEFAULT, boat("a", color="red", masts=[{"name": "main", "height": 3}]), {}),
    ("POST", IN_DEFAULT, boat("a"), {}),
    ("POST", IN_DEFAULT, boat("b", color="green", crew="many"), {}),
    ("POST", IN_DEFAULT, boat("b", color="green", crew=200), {}),
    ("POST", IN_DEFAULT, boat("b", masts=[{"height": 0}, {"name": "x"}, {"name": "x"}]), {}),
    ("POST", IN_DEFAULT, boat("Not A Name"), {}),
    ("POST", f"{IN_DEFAULT}?fieldValidation=Strict", boat("b", sails=3), {}),
    ("POST", f"{IN_DEFAULT}?fieldValidation=Warn", boat("b", sails=3), {}),
    ("POST", f"{IN_DEFAULT}?fieldValidation=Ignore", boat("c", sails=3), {}),
    ("POST", f"{IN_DEFAULT}?dryRun=All", boat("d"), {}),
    ("POST", f"/apis/{OURS}/v1/namespaces/nowhere/boats", boat("d"), {}),
    ("POST", IN_DEFAULT, {"metadata": {"name": "d"}}, {}),
    ("POST", IN_DEFAULT, boat("d") | {"kind": "Raft"}, {}),
    ("POST", IN_DEFAULT, boat("d") | {"apiVersion": "v1"}, {}),
    ("POST", IN_DEFAULT, "not json", {}),
    ("POST", IN_DEFAULT, f"apiVersion: {OURS}/v1\nkind: Boat\nmetadata: {{name: y}}\n", {"media": "application/yaml"}),
    ("GET", f"{IN_DEFAULT}/a", None, {"accept": "application/yaml"}),
    ("GET", f"{IN_DEFAULT}/a", None, {"accept": TABLE}),
    ("GET", IN_DEFAULT, None, {"accept": TABLE}),
    ("GET", f"{ALL}?limit=1", None, {}),
    ("GET", f"{ALL}?fieldSelector=spec.color%3Dred", None, {}),
    ("GET", f"{ALL}?fieldSelector=spec.crew%3D2", None, {}),
    ("GET", f"{ALL}?labelSelector=a%3Db", None, {}),
    ("GET", f"{ALL}?resourceVersion=0&watch=1&timeoutSeconds=0&resourceVersionMatch=Exact", None, {}),
    ("GET", f"{IN_DEFAULT}/none", None, {}),
    ("PUT", f"{IN_DEFAULT}/a", boat("a", color="blue"), {}),
    ("PUT", f"{IN_DEFAULT}/none", boat("none"), {}),
    ("PATCH", f"{IN_DEFAULT}/a", {"spec": {"crew": 5}, "status": {"afloat": True}}, {"media": MERGE}),
    ("PATCH", f"{IN_DEFAULT}/a", {"spec": {"crew": None, "color": None}}, {"media": MERGE}),
    ("PATCH", f"{IN_DEFAULT}/a", [{"op": "replace", "path": "/spec/crew", "value": 7}], {"media": JSON_PATCH}),
    ("PATCH", f"{IN_DEFAULT}/a", [{"op": "test", "path": "/spec/crew", "value": 8}], {"media": JSON_PATCH}),
    ("PATCH", f"{IN_DEFAULT}/e?fieldManager=x", boat("e", masts=[{"name": "main"}]), {"media": APPLY}),
    ("PATCH", f"{IN_DEFAULT}/e?fieldManager=y", boat("e", masts=[{"name": "mizzen", "height": 2}]), {"media": APPLY}),
    ("PATCH", f"{IN_DEFAULT}/e?fieldManager=y", boat("e", masts=[{"name": "main", "height": 9}]), {"media": APPLY}),
    ("PATCH", f"{IN_DEFAULT}/e?fieldManager=z", boat("e", masts=[{"name": "main", "height": 8}]), {"media": APPLY}),
    ("PATCH", f"{IN_DEFAULT}/e?fieldManager=x", boat("e", crew=3, sails=1), {"media": APPLY}),
    ("PATCH", f"{IN_DEFAULT}/e", boat("e", crew=3), {"media": APPLY}),
    ("GET", f"{IN_DEFAULT}/a/status", None, {}),
    ("PATCH", f"{IN_DEFAULT}/a/status", {"status": {"afloat": True}, "spec": {"crew": 1}}, {"media": MERGE}),
    ("PATCH", f"{IN_DEFAULT}/a/status", {"status": {"afloat": "yes"}}, {"media": MERGE}),
    ("GET", f"{IN_DEFAULT}/a/scale", None, {}),
    ("PATCH", f"{IN_DEFAULT}/a/scale", {"spec": {"replicas": 3}}, {"media": MERGE}),
    ("GET", f"{IN_DEFAULT}/a/scale", None, {}),
    ("PATCH", f"{IN_DEFAULT}/a/scale", {"spec": {"replicas": -3}}, {"media": MERGE}),
    ("DELETE", f"{IN_DEFAULT}/c?dryRun=All", None, {}),
    ("DELETE", f"{IN_DEFAULT}/c", {"preconditions": {"uid": "other"}}, {}),
    ("DELETE", f"{IN_DEFAULT}/c", None, {}),
    ("DELETE", f"{IN_DEFAULT}/c", None, {}),
    ("DELETE", IN_DEFAULT, None, {}),
    ("GET", ALL, None, {}),
    ("GET", f"/apis/{OURS}/v2/boats", None, {}),
]
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGE = re.compile(r'"\d+s"')
_VARIES = ("uid", "resourceVersion", "creationTimestamp", "time", "continue", "age", "storageVersionHash")


def test_every_answer_is_that_of_a_custom_resource(api: BlockingAPI) -> None:
    """In the order of the list: each request finds what those before it left, in both groups alike."""
    different = []
    for request in REQUESTS:
        ours, theirs = (_answer(api, group, *request) for group in (OURS, THEIRS))
        if ours != theirs:
            different.append((request[:2], ours, theirs))
    assert not different


def _answer(api: BlockingAPI, group: str, method: str, target: str, body: Any, options: dict[str, str]) -> Any:
    """The answer, its media type and its warning, but for what differs between any two objects."""
    sent = body if body is None or isinstance(body, bytes) else json.loads(json.dumps(body).replace(OURS, group))
    answer = api.request(method, target.replace(OURS, group), sent, **options)
    headers = (answer.headers["content-type"], answer.headers.get("warning", "").replace(OURS, THEIRS))
    return answer.status, headers, _comparable(answer)


def test_what_has_no_route_is_refused_as_every_generic_server_refuses_it(api: BlockingAPI) -> None:
    strategic = api.request("PATCH", f"{IN_DEFAULT}/a", {}, media="application/strategic-merge-patch+json")
    assert (strategic.status, strategic.json["message"]) == (415, "415: Unsupported Media Type")
    assert api.request("GET", f"{IN_DEFAULT}/a/bottom").status == 404
    assert api.request("POST", f"{IN_DEFAULT}/a", boat("a")).status == 405


def test_who_prefers_protobuf_but_takes_json_gets_json(api: BlockingAPI) -> None:
    """As `kubectl top` does. A custom resource refuses it, though it could answer."""
    protobuf = "application/vnd.kubernetes.protobuf"
    answer = api.request("GET", ALL, accept=f"{protobuf},application/json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert api.request("GET", ALL, accept=protobuf).status == 406
    assert api.request("POST", IN_DEFAULT, b"k8s\0", media=protobuf).status == 415


def test_discovery_is_that_of_a_custom_resource(api: BlockingAPI) -> None:
    for group in (f"/apis/{OURS}", f"/apis/{OURS}/v1"):
        ours, theirs = api.request("GET", group), api.request("GET", group.replace(OURS, THEIRS))
        assert _sorted_resources(_comparable(ours)) == _sorted_resources(_comparable(theirs))


def test_definitions_are_those_of_a_custom_resource(api: BlockingAPI) -> None:
    """The aggregator asks for them in the background, so they are there some moments after the server is."""
    until, shown = time.monotonic() + PATIENCE, "com.example.boats.v1.Boat"
    while shown not in (v2 := api.request("GET", "/openapi/v2").json["definitions"]):
        assert time.monotonic() < until
    v3 = [api.request("GET", f"/openapi/v3/apis/{group}/v1").json["components"]["schemas"] for group in (OURS, THEIRS)]
    for ours, theirs in ((v2, v2), v3):
        own = json.loads(json.dumps(ours[shown]).replace(OURS, THEIRS))
        assert own == theirs["com.example.ships.v1.Boat"]


def _comparable(answer: Any) -> Any:
    text = _UID.sub("UID", answer.body.decode("utf-8", "replace").replace(OURS, THEIRS).replace('"bo"', '"sh"'))
    try:
        return _without(json.loads(_AGE.sub('"AGE"', text)))
    except ValueError:
        return [line for line in text.splitlines() if not any(f"{key}:" in line for key in _VARIES)]


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in _VARIES}
    return [_without(each) for each in value] if isinstance(value, list) else value


def _sorted_resources(document: Any) -> Any:
    if "resources" in document:
        document["resources"] = sorted(
            ({**each, "verbs": sorted(each["verbs"])} for each in document["resources"]), key=lambda each: each["name"]
        )
    return document
