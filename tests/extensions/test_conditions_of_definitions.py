"""What a definition says about its own faults, and how far it is served in spite of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import orjson
from custom_resources import DEFINITIONS, WIDGETS, definition, events, install, until_condition, version, widget
from whole_server import store_of, whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

MERGE = "application/merge-patch+json"
NAME = "widgets.example.com"
KEY = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{NAME}"
RUBBISH = base64.b64encode(b"rubbish").decode()


async def until(server: API, is_wanted: Callable[[dict[str, str]], bool]) -> Json:
    """The definition as soon as the reasons of its conditions are as wanted."""
    async for event in events(server, f"{DEFINITIONS}?watch=true&timeoutSeconds=10"):
        obj: Json = event["object"]
        if is_wanted({each["type"]: each.get("reason") or "" for each in obj["status"]["conditions"] or ()}):
            return obj
    raise AssertionError(f"{NAME} never came to say so")


def from_long_ago() -> Json:
    """As an old server could have stored it: without structure, keeping whatever it does not know."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"properties": {"spec": {"properties": {"size": {"type": "integer"}}}}}
    obj = definition(version(schema=schema), names=names, preserveUnknownFields=True, conversion={"strategy": "None"})
    obj["metadata"] |= {"uid": "0b6e", "generation": 1, "creationTimestamp": "2019-01-01T00:00:00Z"}
    accepted = {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2019-01-01T00:00:00Z"}
    conditions = [accepted, accepted | {"type": "Established"}]
    obj["status"] = {"conditions": conditions, "acceptedNames": names, "storedVersions": ["v1"]}
    return obj


async def test_stored_non_structural_definition_gets_a_condition_and_is_served(tmp_path: Path) -> None:
    async with store_of(tmp_path) as store:
        await store.create(KEY, orjson.dumps(from_long_ago()))
    async with whole_server(tmp_path) as server:
        faulty = await until_condition(server, NAME, "NonStructuralSchema")
        condition = faulty["status"]["conditions"][-1]
        assert condition["reason"] == "Violations"
        assert "spec.preserveUnknownFields: Invalid value: true: must be false" in condition["message"]
        created = await server.request("POST", WIDGETS, widget(spec={"size": 1, "unheard": {"of": True}}))
        assert (created.status, created.json["spec"]) == (201, {"size": 1, "unheard": {"of": True}})
        refused = await server.request("POST", WIDGETS, widget("b", spec={"size": "large"}))
        assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "spec.size")
        labelled = await server.request(
            "PATCH", f"{DEFINITIONS}/{NAME}", {"metadata": {"labels": {"a": "b"}}}, media=MERGE
        )
        assert labelled.status == 200, labelled.body


async def test_condition_is_removed_when_the_schema_becomes_structural(tmp_path: Path) -> None:
    async with store_of(tmp_path) as store:
        await store.create(KEY, orjson.dumps(from_long_ago()))
    async with whole_server(tmp_path) as server:
        await until_condition(server, NAME, "NonStructuralSchema")
        change = {"spec": {"preserveUnknownFields": False, "versions": [version()]}}
        assert (await server.request("PATCH", f"{DEFINITIONS}/{NAME}", change, media=MERGE)).status == 200
        mended = await until(server, lambda told: "NonStructuralSchema" not in told)
        assert [each["type"] for each in mended["status"]["conditions"]] == ["NamesAccepted", "Established"]


async def test_a_definition_whose_webhook_cannot_be_trusted_is_not_established(tmp_path: Path) -> None:
    client = {"url": "https://example.com/convert", "caBundle": RUBBISH}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    async with whole_server(tmp_path) as server:
        faulty = definition(conversion={"strategy": "Webhook", "webhook": webhook})
        assert (await server.request("POST", DEFINITIONS, faulty)).status == 201
        path = f"{DEFINITIONS}/{NAME}"
        found = await until(server, lambda told: told.get("Established") not in (None, "Installing"))
        condition = {each["type"]: each for each in found["status"]["conditions"]}["Established"]
        assert (condition["status"], condition["reason"]) == ("False", "InvalidCABundle")
        assert condition["message"] == "The conversion webhook CABundle is invalid"
        change: Json = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}
        assert (await server.request("PATCH", path, change, media=MERGE)).status == 200
        await until_condition(server, NAME, "Established")
        change = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": RUBBISH}}}}}
        refused = await server.request("PATCH", path, change, media=MERGE)
        assert (refused.status, refused.json["details"]["causes"]) == (
            422,
            [
                {
                    "reason": "FieldValueInvalid",
                    "message": f'Invalid value: "{RUBBISH}": unable to load root certificates: '
                    "unable to parse bytes as PEM block",
                    "field": "spec.conversion.webhookClientConfig.caBundle",
                }
            ],
        )


async def test_definitions_that_come_at_once_do_not_get_the_same_names(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server:
        for number in range(20):
            obj = definition(plural=f"things{number}", kind=f"Thing{number}")
            obj["spec"]["names"]["shortNames"] = ["th"]
            assert (await server.request("POST", DEFINITIONS, obj)).status == 201
        await install(server, definition())
        found = (await server.request("GET", DEFINITIONS)).json[
            "items"
        ]  # The last one in was the last to get its names.
        holders = [each for each in found if each["status"]["acceptedNames"].get("shortNames") == ["th"]]
        assert len(holders) == 1
