"""Whether Endpoints must be written: only when they are not what the service should have."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.endpoint.desired import MANAGED_BY, OVER_CAPACITY, endpoints_with, needs_update
from pilothouse.controllers.endpointslice.endpoint import HEADLESS
from pilothouse.machinery.objects import Json

PORTS = [{"name": "web", "port": 80, "protocol": "TCP"}]


def service(labels: dict[str, str] | None = None, **spec: Any) -> Json:
    meta: Json = {"name": "web", "namespace": "ns"} | ({"labels": labels} if labels is not None else {})
    return {"metadata": meta, "spec": {"clusterIP": "10.0.0.1", **spec}}


def subsets(*ips: str) -> list[Json]:
    return [{"addresses": [{"ip": ip} for ip in ips], "ports": PORTS}] if ips else []


def written(of: Json, *ips: str) -> Json:
    return endpoints_with(None, subsets(*ips), of, "")


SERVICES = [
    service(),
    service({"app": "web"}),
    service(clusterIP="None"),
    service({"app": "web"}, clusterIP="None"),
    service({"app": "web", HEADLESS: ""}),
    service({MANAGED_BY: "somebody else"}),
]


@pytest.mark.parametrize("of", SERVICES)
def test_endpoints_that_were_just_written_need_no_update(of: Json) -> None:
    assert not needs_update(written(of, "10.1.0.1", "10.1.0.2"), subsets("10.1.0.1", "10.1.0.2"), of)
    assert not needs_update(written(of), [], of)


@pytest.mark.parametrize("of", SERVICES)
def test_other_addresses_need_an_update(of: Json) -> None:
    assert needs_update(written(of, "10.1.0.1"), subsets("10.1.0.2"), of)
    assert needs_update(written(of, "10.1.0.1"), [], of)
    assert needs_update(written(of), subsets("10.1.0.1"), of)


@pytest.mark.parametrize(
    ("before", "after"), [(None, {"app": "web"}), ({"app": "web"}, None), ({"a": "1"}, {"a": "2"})]
)
def test_labels_that_the_service_gained_lost_or_changed_need_an_update(before: Any, after: Any) -> None:
    assert needs_update(written(service(before), "10.1.0.1"), subsets("10.1.0.1"), service(after))


def test_unmanaged_endpoints_are_adopted() -> None:
    current = written(service(), "10.1.0.1")
    del current["metadata"]["labels"][MANAGED_BY]
    assert needs_update(current, subsets("10.1.0.1"), service())


def test_addresses_in_another_order_are_the_same() -> None:
    assert not needs_update(written(service(), "10.1.0.2", "10.1.0.1"), subsets("10.1.0.1", "10.1.0.2"), service())


def test_more_addresses_than_fit_are_cut_off_and_marked_until_they_fit() -> None:
    many = [f"10.1.{number // 250}.{number % 250}" for number in range(1001)]
    cut = written(service(), *many)
    assert len(cut["subsets"][0]["addresses"]) == 1000
    assert cut["metadata"]["annotations"] == {OVER_CAPACITY: "truncated"}
    assert needs_update(cut, cut["subsets"], service())
    fitting = endpoints_with(cut, subsets(*many[:3]), service(), "")
    assert OVER_CAPACITY not in fitting["metadata"]["annotations"]
    assert not needs_update(fitting, subsets(*many[:3]), service())
