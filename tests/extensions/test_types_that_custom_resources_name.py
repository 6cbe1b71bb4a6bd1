"""What custom resources say of their type, numbers that no integer holds, and rules where nothing can be: each is
answered in upstream's words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from custom_resources import DEFINITIONS, WIDGETS, definition, install, version, widget
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.client import Json
from pilothouse.testing import API, Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")
MERGE, JSON_PATCH = (f"application/{kind}-patch+json" for kind in ("merge", "json"))
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
NO_TYPE = "couldn't get version/kind; json parse error: json: cannot unmarshal "
KUBE = 'scheme "pkg/api/legacyscheme/scheme.go:30"'
NO_SCALE = (
    "no kind is registered for the type v1.Scale in scheme "
    '"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"'
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[API]:
    async with whole_server() as running:
        await install(running, definition(version(schema=FREE, subresources={"scale": SCALE, "status": {}})))
        assert (await running.request("POST", WIDGETS, widget(spec={"n": 1}))).status == 201
        await create_config_map(running, "a")
        yield running


def said(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"apiVersion": "autoscaling/v1", "kind": "Scal"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": "6"}},
        b"{",
    ],
)
async def test_malformed_scale_is_rejected_without_details(server: API, body: Any) -> None:
    assert said(await server.request("PUT", f"{WIDGETS}/a/scale", body)) == (400, NO_SCALE)


@pytest.mark.parametrize("verb", ["POST", "PUT"])
async def test_a_version_that_is_null_is_no_text(server: API, verb: str) -> None:
    path = WIDGETS if verb == "POST" else f"{WIDGETS}/a"
    assert said(await server.request(verb, path, widget() | {"apiVersion": None})) == (
        400,
        'Widget in version "" cannot be handled as a Widget: '
        ".apiVersion accessor error: <nil> is of the type <nil>, expected string",
    )


@pytest.mark.parametrize("path", [f"{WIDGETS}/a", f"{WIDGETS}/a/status"])
async def test_a_patch_that_takes_the_version_of_a_custom_resource_away_fails(server: API, path: str) -> None:
    why = "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"
    assert said(await server.request("PATCH", path, {"apiVersion": None}, media=MERGE)) == (500, why)


async def test_a_patch_that_names_another_group_is_refused(server: API) -> None:
    assert said(await server.request("PATCH", f"{WIDGETS}/a", {"apiVersion": "other/v2"}, media=MERGE)) == (
        422,
        'Widget.other "a" is invalid: apiVersion: Invalid value: "other/v2": must be example.com/v1',
    )


async def test_a_built_in_object_that_loses_its_version_loses_its_name(server: API) -> None:
    why = "the name of the object (a based on URL) was undeterminable: name must be provided"
    for patch, media in (({"apiVersion": None}, MERGE), ([{"op": "remove", "path": "/apiVersion"}], JSON_PATCH)):
        assert said(await server.request("PATCH", f"{CONFIG_MAPS}/a", patch, media=media)) == (400, why)


@pytest.mark.parametrize("patch", [{"apiVersion": None}, {"apiVersion": None, "data": {"k": "v"}}])
async def test_fields_of_an_object_without_version_are_unknown(server: API, patch: Json) -> None:
    path = f"{CONFIG_MAPS}/a"
    unknown = ["metadata", *patch.keys() & {"data"}]
    warned = await server.request("PATCH", path, patch, media=MERGE)
    assert sorted(warned.headers["warning"].split(", ")) == sorted(f'299 - "unknown field \\"{f}\\""' for f in unknown)
    strict = await server.request("PATCH", f"{path}?fieldValidation=Strict", patch, media=MERGE)
    assert strict.status == 422
    assert "strict decoding error: unknown field" in strict.json["message"]


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"kind": []}, f"{NO_TYPE}array into Go struct field .kind of type string"),
        ({"kind": {}}, f"{NO_TYPE}object into Go struct field .kind of type string"),
        ({"apiVersion": 0}, f"{NO_TYPE}number into Go struct field .apiVersion of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        ({"kind": "Pod", "apiVersion": None}, "converting (core.Pod) to (core.ConfigMap): unknown conversion"),
        ({"kind": "X"}, f'no kind "X" is registered for version "v1" in {KUBE}'),
        ({"apiVersion": "v3"}, f'no kind "ConfigMap" is registered for version "v3" in {KUBE}'),
        (
            {"kind": "X", "apiVersion": None},
            f'no kind "X" is registered for the internal version of group "" in {KUBE}',
        ),
    ],
)
async def test_a_patch_to_another_type_is_refused_with_the_reason(server: API, patch: Json, reason: str) -> None:
    status, message = said(await server.request("PATCH", f"{CONFIG_MAPS}/a", patch, media=MERGE))
    assert (status, message.endswith(f'": {reason}')) == (422, True), message


async def test_a_built_in_object_that_loses_its_kind_is_of_the_kind_it_is_stored_as(server: API) -> None:
    patched = await server.request("PATCH", f"{CONFIG_MAPS}/a", {"kind": None}, media=MERGE)
    assert (patched.status, patched.json["kind"]) == (200, "ConfigMap")


@pytest.mark.parametrize(("verb", "path"), [("POST", WIDGETS), ("PATCH", f"{WIDGETS}/applied?fieldManager=me")])
async def test_integers_that_no_64_bits_hold_are_floats_in_yaml(server: API, verb: str, path: str) -> None:
    name = "applied" if verb == "PATCH" else "posted"
    media = "application/apply-patch+yaml" if verb == "PATCH" else "application/yaml"
    numbers = "{a: 99999999999999999999, b: 9223372036854775808, c: -9223372036854775809}"
    body = f"{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: {name}}}, spec: {numbers}}}"
    created = await server.request(verb, path, body.encode(), media=media)
    assert created.status == 201, created.json
    assert created.json["spec"] == {"a": 1e20, "b": 2.0**63, "c": -(2.0**63)}


async def test_a_config_map_that_is_too_large_is_so_at_no_path(server: API) -> None:
    large = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "large"},
        "data": {"a": "x" * (1 << 20) + "y"},
    }
    assert said(await server.request("POST", CONFIG_MAPS, large)) == (
        422,
        'ConfigMap "large" is invalid: []: Too long: may not be more than 1048576 bytes',
    )


def _backend(kind: str) -> dict[str, Any]:
    item = {
        "type": "object",
        "properties": {"replicas": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.replicas <= 10"}],
    }
    backend = {"type": kind, "maxItems": 100, "items": item}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"backend": backend}}}}


async def test_rules_of_items_that_an_object_has_cannot_be_compiled(server: API) -> None:
    gadgets = WIDGETS.replace("widgets", "gadgets")
    await install(server, definition(version(schema=_backend("array")), plural="gadgets", kind="Gadget"))
    gadget = widget(spec={"backend": [{"replicas": 8}]}) | {"kind": "Gadget"}
    assert (await server.request("POST", gadgets, gadget)).status == 201
    schema = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": _backend("object")}]
    path = f"{DEFINITIONS}/gadgets.example.com"
    assert (await server.request("PATCH", path, schema, media=JSON_PATCH)).status == 200
    labelled = await server.request("PATCH", f"{gadgets}/a", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    assert said(labelled) == (
        422,
        'Gadget.example.com "a" is invalid: spec.backend[0]: Invalid value: "object": '
        "rule compiler initialization error: failed to convert to declType for CEL validation rules",
    )
