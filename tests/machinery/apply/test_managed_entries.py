"""metadata.managedFields, decoded, encoded, and shared between an object and its Scale."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.apply.managed import (
    REPLICAS,
    InvalidManagedFields,
    decode_entries,
    encode_entries,
    to_parent,
    to_scale,
)

APPS = "apps/v1"
MAPPINGS = {APPS: REPLICAS}


def entry(manager: str, operation: str = "Update", **more: Any) -> dict[str, Any]:
    fields = more.pop("fields", {"f:spec": {"f:replicas": {}}})
    base = {"manager": manager, "operation": operation, "apiVersion": APPS, "fieldsType": "FieldsV1"}
    return base | {"fieldsV1": fields} | more


def test_entries_come_back_as_they_were_appliers_first_then_by_age() -> None:
    late, early = "2024-01-01T00:00:09Z", "2024-01-01T00:00:01Z"
    entries = [
        entry("b", "Apply", time=late),
        entry("z", time=early),
        entry("a", time=late),
        entry("a", time=late, subresource="status"),
        entry("a", time=late, apiVersion="apps/v2"),
    ]
    ordered = [entries[0], entries[1], entries[2], entries[3], entries[4]]
    assert encode_entries(decode_entries(reversed(entries))) == ordered


def test_an_applier_is_the_same_in_every_version_and_an_updater_is_not() -> None:
    twice = [entry("m", "Apply"), entry("m", "Apply", apiVersion="apps/v2")]
    assert len(decode_entries(twice).sets) == 1
    assert len(decode_entries([entry("m"), entry("m", apiVersion="apps/v2")]).sets) == 2


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"operation": "Guess"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 0"),
        ({"fieldsType": "FieldsV2"}, 'invalid fieldsType "FieldsV2" in managed fields entry 0'),
        ({"fieldsV1": {"x": {}}}, "error decoding set: x"),
    ],
)
def test_entries_that_make_no_sense_are_refused(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidManagedFields) as caught:
        decode_entries([entry("m") | broken])
    assert str(caught.value) == message


def test_a_scale_shows_those_who_own_the_replicas() -> None:
    other = entry("other", fields={"f:spec": {"f:paused": {}}})
    unknown = entry("old", apiVersion="apps/v0")
    shown = to_scale([entry("m", "Apply", time="2024-01-01T00:00:00Z"), other, unknown], MAPPINGS)
    assert shown == [entry("m", "Apply", time="2024-01-01T00:00:00Z") | {"apiVersion": "autoscaling/v1"}]


def test_whoever_took_the_replicas_in_the_scale_owns_them_in_the_object() -> None:
    parent = [entry("m", "Apply", fields={"f:spec": {"f:paused": {}, "f:replicas": {}}}), entry("old", apiVersion="v0")]
    scale = [entry("s", subresource="scale") | {"apiVersion": "autoscaling/v1"}]
    assert to_parent(parent, scale, api_version=APPS, mappings=MAPPINGS) == [
        entry("m", "Apply", fields={"f:spec": {"f:paused": {}}}),
        entry("s", subresource="scale"),
    ]


def test_an_applier_that_still_owns_the_replicas_keeps_its_entry() -> None:
    parent = [entry("m", "Apply", time="2024-01-01T00:00:00Z")]
    assert to_parent(parent, to_scale(parent, MAPPINGS), api_version=APPS, mappings=MAPPINGS) == parent
