"""Plans for slices, against the set of endpoints that is desired."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.controllers.endpointslice.endpoint import EndpointKey, endpoint_key
from pilothouse.controllers.endpointslice.plan import GroupPlanner, Plan
from pilothouse.machinery.objects import Json, name_of

LIMIT = 3
LABELS = {"kubernetes.io/service-name": "s"}
DESIRED = st.dictionaries(st.integers(0, 15), st.booleans(), max_size=14)
"""Numbers of addresses, and whether each is ready."""


def endpoint(number: int, ready: bool) -> Json:
    return {"addresses": [f"10.0.0.{number}"], "conditions": {"ready": ready}}


def planner(labels: dict[str, str] = LABELS) -> GroupPlanner:
    def new_slice() -> Json:
        return {"metadata": {"labels": labels}, "endpoints": []}

    return GroupPlanner(limit=LIMIT, labels=labels, new_slice=new_slice)


def planned(existing: dict[str, Json], desired: dict[int, bool], labels: dict[str, str] = LABELS) -> Plan:
    endpoints = [endpoint(number, ready) for number, ready in desired.items()]
    return planner(labels).plan([*existing.values()], {endpoint_key(each): each for each in endpoints})


def carried_out(existing: dict[str, Json], plan: Plan, names: count[int]) -> dict[str, Json]:
    after = dict(existing)
    for each in plan.delete:
        del after[name_of(each)]
    for each in plan.update:
        assert name_of(each) in after
        after[name_of(each)] = each
    for each in plan.create:
        name = f"s-{next(names)}"
        after[name] = {**each, "metadata": {**each["metadata"], "name": name}}
    return after


def held(slices: dict[str, Json]) -> list[Json]:
    return sorted((each for one in slices.values() for each in one["endpoints"]), key=endpoint_key)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(DESIRED, max_size=6))
def test_slices_hold_just_the_desired_endpoints_and_never_too_many(steps: list[dict[int, bool]]) -> None:
    slices: dict[str, Json] = {}
    names = count()
    for desired in steps:
        before = held(slices)
        plan = planned(slices, desired)
        _is_frugal(slices, plan, desired)
        assert held(slices) == before  # what is cached is never changed
        slices = carried_out(slices, plan, names)
        assert held(slices) == sorted((endpoint(*each) for each in desired.items()), key=endpoint_key)
        assert all(0 < len(each["endpoints"]) <= LIMIT for each in slices.values())
        again = planned(slices, desired)
        assert again == Plan()


def _is_frugal(slices: dict[str, Json], plan: Plan, desired: dict[int, bool]) -> None:
    """No endpoint moves, and nothing is created that a slice that changes anyway has room for."""
    wanted = {endpoint_key(endpoint(*each)) for each in desired.items()}
    for each in (*plan.update, *plan.delete):
        kept = _endpoints(slices[name_of(each)]) & wanted
        assert kept <= _endpoints(each) if each in plan.update else not kept
    if plan.create:
        shrunk = [each for each in plan.update if not _endpoints(slices[name_of(each)]) <= wanted]
        assert all(len(each["endpoints"]) == LIMIT for each in (*shrunk, *plan.create[:-1]))
    old = [endpoint_key(one) for each in slices.values() for one in each["endpoints"]]
    assert plan.added == len(wanted - {*old})
    assert plan.removed == len({*old} - wanted)


def _endpoints(endpoint_slice: Json) -> set[EndpointKey]:
    return {endpoint_key(each) for each in endpoint_slice["endpoints"]}


def test_labels_that_changed_are_put_on_every_slice() -> None:
    slices = carried_out({}, planned({}, dict.fromkeys(range(5), True)), count())
    plan = planned(slices, dict.fromkeys(range(5), True), LABELS | {"app": "web"})
    assert len(plan.update) == 2
    assert {each["metadata"]["labels"]["app"] for each in plan.update} == {"web"}


def test_one_more_endpoint_updates_only_the_fullest_slice_with_room() -> None:
    slices = carried_out({}, planned({}, dict.fromkeys(range(8), True)), count())
    gone = {number: True for number in range(8) if number not in (1, 2)}
    slices = carried_out(slices, planned(slices, gone), count(10))
    assert [len(each["endpoints"]) for each in slices.values()] == [1, 3, 2]
    plan = planned(slices, gone | {12: True})
    assert ([name_of(each) for each in plan.update], plan.create, plan.delete) == (["s-2"], [], [])


def test_only_a_change_that_clients_see_is_one() -> None:
    old = endpoint(1, True) | {"targetRef": {"name": "p", "resourceVersion": "1"}, "hints": {"forZones": []}}
    new = endpoint(1, True) | {"targetRef": {"name": "p", "resourceVersion": "2"}}
    existing = [{"metadata": {"name": "s-0", "labels": LABELS}, "endpoints": [old]}]
    assert not planner().plan(existing, {endpoint_key(new): new}).update
    assert planner().plan(existing, {endpoint_key(new): new | {"nodeName": "n"}}).update
