"""Who owns which fields of an event is told through both groups alike, in the words of the one that was written by."""

from __future__ import annotations

from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.testing import API

CORE, EVENTS = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


async def owners(api: API, path: str) -> dict[str, Json]:
    entries = (await api.request("GET", path)).json["metadata"]["managedFields"]
    return {entry["manager"]: {"version": entry["apiVersion"], **entry["fieldsV1"]} for entry in entries}


async def test_a_write_through_one_group_forgets_who_owned_fields_through_the_other_as_upstream_does() -> None:
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "r",
        "note": "m",
        "type": "Normal",
        "action": "a",
        "reportingController": "x/y",
        "reportingInstance": "i",
    }
    async with whole_server() as api:
        assert (await api.request("POST", f"{EVENTS}?fieldManager=first", event)).status == 201
        assert await owners(api, f"{CORE}/e") == await owners(api, f"{EVENTS}/e")
        patched = await api.request("PATCH", f"{CORE}/e?fieldManager=second", {"message": "n"}, media=MERGE)
        by_core, by_events = await owners(api, f"{CORE}/e"), await owners(api, f"{EVENTS}/e")
    assert (patched.status, patched.json["message"]) == (200, "n")
    assert by_core == by_events
    assert by_core == {"second": {"version": "v1", "f:message": {}}}
