"""Definitions as operators install them: objects validate, default, prune, print, scale, convert and come back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import orjson
import pytest
import pytest_asyncio
from custom_resources import DEFINITIONS, events, install
from large_definitions import GROUP, Large, certificates, compositions, gateways, monitors
from whole_server import whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

GATEWAYS, CERTIFICATES, COMPOSITIONS, MONITORS = ALL = (gateways(), certificates(), compositions(), monitors())
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
named = pytest.mark.parametrize("large", ALL, ids=lambda large: large.plural)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    async with whole_server(tmp_path_factory.mktemp("large")) as running:
        for large in ALL:
            await install(running, large.definition)
        yield running


async def create(server: API, large: Large, name: str, **spec: Any) -> dict[str, Any]:
    answer = await server.request("POST", f"{large.path()}?fieldValidation=Strict", large.object(name, **spec))
    assert answer.status == 201, answer.json["message"]
    made: dict[str, Any] = answer.json
    return made


async def refusal(server: API, large: Large, **spec: Any) -> str:
    answer = await server.request("POST", large.path(), large.object("refused", **spec))
    assert answer.status == 422, answer.body
    return str(answer.json["message"])


def changed(large: Large, *path: str | int, to: Any) -> dict[str, Any]:
    """The example's spec with something else at the path."""
    spec = deepcopy(large.spec)
    place: Any = spec
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return spec


@named
async def test_the_definition_is_large_and_structural_and_stays_as_it_was_sent(server: API, large: Large) -> None:
    found = (await server.request("GET", f"{DEFINITIONS}/{large.plural}.{GROUP}")).json
    assert len(orjson.dumps(found["spec"])) > 14_000
    assert "NonStructuralSchema" not in {each["type"] for each in found["status"]["conditions"]}
    assert found["spec"]["versions"][0]["schema"] == large.definition["spec"]["versions"][0]["schema"]


@named
async def test_every_field_that_the_schema_knows_comes_back_as_it_was_sent(server: API, large: Large) -> None:
    made = await create(server, large, "whole")
    assert made["spec"] == large.spec
    path = f"{large.path()}/whole"
    shown = await server.request("PUT", f"{path}/status", made | {"status": large.status})
    assert (shown.status, shown.json["status"]) == (200, large.status)
    exported = (await server.request("GET", path)).json
    assert (await server.request("DELETE", path)).status == 200
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        exported["metadata"].pop(field)
    again = await server.request("POST", f"{large.path()}?fieldValidation=Strict", exported)
    assert (again.status, again.json["spec"]) == (201, large.spec)


@named
async def test_unknown_fields_are_pruned_at_any_depth(server: API, large: Large) -> None:
    def spoilt(value: Any, schema: Any) -> Any:
        """A field that nobody knows in every object that does not keep such fields."""
        if isinstance(value, list):
            return [spoilt(item, schema["items"]) for item in value]
        if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
            return value
        if "additionalProperties" in schema:
            return {key: spoilt(each, schema["additionalProperties"]) for key, each in value.items()}
        return {key: spoilt(each, schema["properties"][key]) for key, each in value.items()} | {"nobody": "knows"}

    schema = large.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    body = large.object("pruned") | {"spec": spoilt(large.spec, schema)}
    unknown = orjson.dumps(body).count(b'"nobody"')
    strict = await server.request("POST", f"{large.path()}?fieldValidation=Strict", body)
    assert strict.status == 400
    assert strict.json["message"].count("unknown field") == unknown
    pruned = await server.request("POST", large.path(), body)
    assert (pruned.status, pruned.json["spec"]) == (201, large.spec)


@named
async def test_every_version_shows_the_same_object(server: API, large: Large) -> None:
    await create(server, large, "seen")
    for version in large.versions:
        found = (await server.request("GET", f"{large.path(version)}/seen")).json
        assert (found["apiVersion"], found["spec"]) == (f"{GROUP}/{version}", large.spec)
        relabelled = await server.request(
            "PATCH", f"{large.path(version)}/seen", {"metadata": {"labels": {"by": version}}}, media=MERGE
        )
        assert (relabelled.status, relabelled.json["metadata"]["generation"]) == (200, 1)


@named
async def test_second_apply_is_a_no_op(server: API, large: Large) -> None:
    path = f"{large.path()}/applied?fieldManager=me"
    first = await server.request("PATCH", path, large.object("applied"), media=APPLY)
    again = await server.request("PATCH", path, large.object("applied"), media=APPLY)
    assert (first.status, again.status) == (201, 200), first.body
    assert again.json["metadata"]["resourceVersion"] == first.json["metadata"]["resourceVersion"]


async def test_tables_have_the_declared_columns(server: API) -> None:
    for large, cells in (
        (GATEWAYS, ["edge", "10.0.0.1", "True"]),
        (CERTIFICATES, ["True", "cert", "issuer", 3, "<invalid>"]),
        (COMPOSITIONS, ["XBucket", "example.com/v1"]),
        (MONITORS, [2, 2, "image:1"]),
    ):
        made = await create(server, large, "shown")
        await server.request("PUT", f"{large.path()}/shown/status", made | {"status": large.status})
        table = (await server.request("GET", f"{large.path()}/shown", accept=TABLE)).json
        assert table["rows"][0]["cells"][:-1] == ["shown", *cells]


async def test_gateways_keep_their_rules(server: API) -> None:
    listener = GATEWAYS.spec["listeners"][0]
    plain = {"name": "http", "port": 80, "protocol": "HTTP"}
    made = await create(server, GATEWAYS, "defaults", listeners=[plain])
    assert made["spec"]["listeners"] == [plain | {"allowedRoutes": {"namespaces": {"from": "Same"}}}]
    for listeners, why in (
        ([listener, listener | {"port": 444}], 'spec.listeners[1]: Duplicate value: {"name":"https"}'),
        ([listener, listener | {"name": "b"}], "Combination of port, protocol and hostname must be unique"),
        ([listener | {"protocol": "HTTP"}], "tls must not be specified for protocols ['HTTP', 'TCP']"),
        ([listener | {"hostname": "a..b"}], "spec.listeners[0].hostname in body should match"),
        ([listener | {"port": 70000}], "should be less than or equal to 65535"),
        ([listener | {"tls": {"certificateRefs": []}}], "certificates must be there"),
        ([], "spec.listeners in body should have at least 1 items"),
        ([plain | {"name": f"l{port}", "port": port} for port in range(1, 66)], "must have at most 64 items"),
    ):
        assert why in await refusal(server, GATEWAYS, listeners=listeners), why


async def test_certificates_keep_their_rules_and_are_selected_by_their_fields(server: API) -> None:
    bare = {"secretName": "s", "issuerRef": {"name": "special"}, "dnsNames": ["a.example.com"], "ipAddresses": []}
    body = CERTIFICATES.object("bare") | {"spec": bare}
    made = (await server.request("POST", CERTIFICATES.path(), body)).json
    assert made["spec"] == bare | {"duration": "2160h", "issuerRef": {"name": "special", "kind": "Issuer"}}
    selected = f"{CERTIFICATES.path()}?fieldSelector=spec.issuerRef.name%3Dspecial"
    assert [item["metadata"]["name"] for item in (await server.request("GET", selected)).json["items"]] == ["bare"]
    watch = events(server, f"{selected}&watch=true&timeoutSeconds=5")
    assert (await anext(watch))["type"] == "ADDED"
    await server.request(
        "PATCH", f"{CERTIFICATES.path()}/bare", {"spec": {"issuerRef": {"name": "other"}}}, media=MERGE
    )
    assert (await anext(watch))["type"] == "DELETED"
    kept = await server.request("PATCH", f"{CERTIFICATES.path()}/bare", {"spec": {"secretName": "t"}}, media=MERGE)
    assert (kept.status, "secretName is immutable" in kept.json["message"]) == (422, True)
    for spec, why in (
        ({"renewBefore": "3000h"}, "renewed too early"),
        ({"privateKey": {"algorithm": "Ed25519", "size": 256}}, "size must not be set for Ed25519"),
        ({"dnsNames": ["a", "a"]}, 'spec.dnsNames[1]: Duplicate value: "a"'),
        ({"ipAddresses": ["1.2.3"]}, "spec.ipAddresses[0] in body must be of type ipv4"),
        ({"privateKey": {"size": "big"}}, "must be of type integer"),
    ):
        assert why in await refusal(server, CERTIFICATES, **spec), why


async def test_compositions_embed_arbitrary_function_inputs(server: API) -> None:
    no_kind = changed(COMPOSITIONS, "pipeline", 0, "input", to={"anything": 1})
    why = await refusal(server, COMPOSITIONS, **no_kind)
    assert "spec.pipeline[0].input.apiVersion: Required value" in why
    assert "spec.pipeline[0].input.kind: Required value" in why
    missing = {"compositeTypeRef": COMPOSITIONS.spec["compositeTypeRef"], "mode": "Pipeline"}
    answer = await server.request("POST", COMPOSITIONS.path(), COMPOSITIONS.object("m") | {"spec": missing})
    assert (answer.status, "the mode needs its part" in answer.json["message"]) == (422, True)
    await create(server, COMPOSITIONS, "fixed")
    patch = {"spec": {"compositeTypeRef": {"kind": "XOther"}}}
    moved = await server.request("PATCH", f"{COMPOSITIONS.path()}/fixed", patch, media=MERGE)
    assert (moved.status, "Value is immutable" in moved.json["message"]) == (422, True)


async def test_two_managers_share_the_steps_of_a_composition(server: API) -> None:
    def step(name: str) -> dict[str, Any]:
        reference = COMPOSITIONS.spec["compositeTypeRef"]
        pipeline = [{"step": name, "functionRef": {"name": name}}]
        spec = {"compositeTypeRef": reference, "mode": "Pipeline", "pipeline": pipeline}
        return COMPOSITIONS.object("shared") | {"spec": spec}

    for manager in ("one", "two"):
        path = f"{COMPOSITIONS.path()}/shared?fieldManager={manager}"
        assert (await server.request("PATCH", path, step(manager), media=APPLY)).status in (200, 201)
    found = (await server.request("GET", f"{COMPOSITIONS.path()}/shared")).json
    assert [each["step"] for each in found["spec"]["pipeline"]] == ["one", "two"]


async def test_monitors_scale_and_take_quantities_and_ports_in_either_form(server: API) -> None:
    await create(server, MONITORS, "scaled")
    path = f"{MONITORS.path()}/scaled"
    made = (await server.request("GET", path)).json
    await server.request("PUT", f"{path}/status", made | {"status": MONITORS.status})
    scaled = (await server.request("PATCH", f"{path}/scale", {"spec": {"replicas": 9}}, media=MERGE)).json
    assert (scaled["spec"], scaled["status"]) == ({"replicas": 9}, {"replicas": 2, "selector": "app=prometheus"})
    container = MONITORS.spec["containers"][0]
    for limit, port in ((1, "web"), ("1500m", 9090)):
        probe = {"httpGet": {"port": port}}
        changes = {"resources": {"limits": {"cpu": limit}}, "livenessProbe": probe}
        await create(server, MONITORS, f"m{port}", containers=[container | changes])
    assert "should match" in await refusal(
        server, MONITORS, containers=[container | {"resources": {"limits": {"cpu": "1 GB"}}}]
    )
    assert "must be of type" in await refusal(
        server, MONITORS, containers=[container | {"livenessProbe": {"httpGet": {"port": True}}}]
    )
    assert "too many replicas" in await refusal(server, MONITORS, replicas=101)
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]
    made = await create(server, MONITORS, "ports", containers=[container | {"ports": ports}])
    assert made["spec"]["containers"][0]["ports"][0] == {"containerPort": 1, "protocol": "TCP"}
