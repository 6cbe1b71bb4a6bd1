"""How endpoints are divided among zones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.controllers.endpointslice.plan import Plan
from pilothouse.controllers.endpointslice.topology_cache import TopologyCache
from pilothouse.controllers.endpointslice.zone_allocation import (
    NoAllocation,
    allocations,
    is_overloaded,
    redistribution,
)
from pilothouse.machinery.objects import Json

CPU = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 64), min_size=2)


def node(zone: str, cpu: str = "4", *, ready: bool = True, labels: dict[str, str] | None = None) -> Json:
    status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": str(ready)}]}
    zoned = {"topology.kubernetes.io/zone": zone} if zone else {}
    return {"metadata": {"labels": zoned | (labels or {})}, "status": status}


def set_nodes(cache: TopologyCache, nodes: list[Json]) -> None:
    """These are all the nodes that there are now."""
    for number in range(10):
        cache.zones.forget_node(f"node-{number}")
    for number, each in enumerate(nodes):
        cache.zones.set_node({**each, "metadata": {**each["metadata"], "name": f"node-{number}"}})


def endpoint(number: int, zone: str, *, ready: bool = True) -> Json:
    return {"addresses": [f"10.0.0.{number}"], "zone": zone, "conditions": {"ready": ready}}


def hints(plan: Plan) -> list[str | None]:
    found = [one.get("hints") for each in (*plan.create, *plan.update) for one in each["endpoints"]]
    return [each["forZones"][0]["name"] if each else None for each in found]


def put(cache: TopologyCache, plan: Plan, unchanged: list[Json] | None = None) -> list[str]:
    return [event.message for event in cache.put_hints("ns/web", "IPv4", plan, unchanged or [])]


@settings(max_examples=100, deadline=None)
@given(cpu=CPU, held=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 20), min_size=1))
def test_redistribution_moves_hints_until_zones_are_near_their_share(cpu: dict[str, int], held: dict[str, int]) -> None:
    ratios = {zone: amount / sum(cpu.values()) for zone, amount in cpu.items()}
    held = {zone: number for zone, number in held.items() if zone in ratios}
    try:
        allocated = allocations(ratios, sum(held.values()))
    except NoAllocation:
        return
    due = redistribution(allocated, held)
    assert sum(due.giving.values()) == sum(due.receiving.values())
    assert not due.giving.keys() & due.receiving.keys()
    assert all(number <= held.get(zone, 0) for zone, number in due.giving.items())
    after = {zone: held.get(zone, 0) - due.giving.get(zone, 0) + due.receiving.get(zone, 0) for zone in ratios}
    surplus = [after[zone] - allocated[zone].desired for zone in ratios]
    assert min(max(surplus), -min(surplus)) < 1


@pytest.mark.parametrize(
    ("ratios", "endpoints", "why"),
    [
        ({"a": 1.0}, 5, "Nodes only ready in one zone"),
        ({"a": 0.5, "b": 0.5}, 1, "Insufficient number of endpoints (1 endpoints, 2 zones)"),
        (
            {"a": 0.35, "b": 0.65},
            2,
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
            " (2 endpoints, 2 zones)",
        ),
    ],
)
def test_impossible_allocations_are_reported(ratios: dict[str, float], endpoints: int, why: str) -> None:
    with pytest.raises(NoAllocation) as refused:
        allocations(ratios, endpoints)
    assert str(refused.value) == why


def test_hints_that_no_longer_fit_are_noticed() -> None:
    assert not is_overloaded({"a": 5, "b": 5}, {"a": 0.55, "b": 0.45})
    assert is_overloaded({"a": 5, "b": 5}, {"a": 0.9, "b": 0.1})
    assert is_overloaded({"a": 5}, {"a": 0.5, "b": 0.5})
    assert is_overloaded({"a": 5}, {})
    assert not is_overloaded({}, {})


def test_a_cache_hints_remembers_and_forgets() -> None:
    cache = TopologyCache()
    set_nodes(
        cache, [node("a"), node("b"), node("c", ready=False), node("", labels={"node-role.kubernetes.io/master": ""})]
    )
    plan = Plan(create=[{"endpoints": [endpoint(1, "a"), endpoint(2, "a"), endpoint(3, "a", ready=False)]}])
    assert put(cache, plan) == ["Topology Aware Hints has been enabled, addressType: IPv4"]
    assert sorted(map(str, hints(plan))) == ["None", "a", "b"]
    assert cache.overloaded_services() == []
    set_nodes(cache, [node("a", "1"), node("b", "63")])
    assert cache.overloaded_services() == ["ns/web"]
    set_nodes(cache, [node("a"), node("")])
    plan = Plan(update=plan.create)
    assert put(cache, plan) == [
        "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"
    ]
    assert hints(plan) == [None, None, None]
    assert not cache.has_hints("ns/web")


def test_slices_with_valid_hints_are_unchanged() -> None:
    cache = TopologyCache()
    set_nodes(cache, [node("a"), node("b")])
    kept = {"endpoints": [endpoint(1, "a") | {"hints": {"forZones": [{"name": "a"}]}}]}
    plan = Plan(create=[{"endpoints": [endpoint(2, "b")]}])
    put(cache, plan, [kept])
    assert (hints(plan), plan.update) == (["b"], [])


def test_an_endpoint_without_a_zone_ends_all_hints() -> None:
    cache = TopologyCache()
    set_nodes(cache, [node("a"), node("b")])
    plan = Plan(create=[{"endpoints": [endpoint(1, "a"), endpoint(2, "")]}])
    assert put(cache, plan) == ["One or more endpoints do not have a zone specified, addressType: IPv4"]
    assert hints(plan) == [None, None]


def test_a_node_that_changes_or_goes_is_counted_as_it_is_now() -> None:
    cache = TopologyCache()
    set_nodes(cache, [node("a"), node("b"), node("b")])
    assert cache.zones.ratios == {"a": 1 / 3, "b": 2 / 3}
    cache.zones.set_node(node("b", "8") | {"metadata": {"name": "node-2", **node("b")["metadata"]}})
    assert cache.zones.ratios == {"a": 1 / 4, "b": 3 / 4}
    cache.zones.set_node(node("b", ready=False) | {"metadata": {"name": "node-1", **node("b")["metadata"]}})
    assert cache.zones.ratios == {"a": 1 / 3, "b": 2 / 3}
    cache.zones.set_node(node("") | {"metadata": {"name": "node-3"}})
    assert cache.zones.ratios is None
    cache.zones.forget_node("node-3")
    assert cache.zones.ratios == {"a": 1 / 3, "b": 2 / 3}
    cache.zones.forget_node("node-2")
    assert cache.zones.ratios is None
