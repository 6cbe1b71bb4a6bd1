"""How many seats requests take, and how many each level has to give."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.estimate import ONE_SEAT, ResourceStats, WorkEstimate, estimate
from pilothouse.apiserver.flowcontrol.queue_set import Queuing, Ticket
from pilothouse.apiserver.flowcontrol.series import FlowSeries
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.request_info import request_info
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

PODS = "/api/v1/namespaces/ns/pods"
EVERYBODY = [{"kind": "User", "user": {"name": "*"}}]
ANYTHING = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}]


async def _no_body(limit: int) -> bytes:
    return b""


def work_of(target: str, method: str = "GET", *, objects: int = 0, watchers: int = 0) -> WorkEstimate:
    path, _, query = target.partition("?")
    request = Request(method, path, query, [], _no_body)
    request.info = request_info(request)
    known = {GroupResource("", "pods"): ResourceStats(objects, watchers)}
    return estimate(request, known.get, FlowSeries("level", "schema"))


@pytest.mark.parametrize(
    ("target", "objects", "seats"),
    [
        (PODS, 0, 1),
        (PODS, 100, 1),
        (PODS, 101, 2),
        (PODS, 5000, 10),
        (f"{PODS}?limit=150", 5000, 2),
        (f"{PODS}?limit=500", 120, 2),
        (f"{PODS}?limit=0", 5000, 10),
        (f"{PODS}?limit=many", 5000, 10),
        (f"{PODS}/a", 5000, 1),
        (f"{PODS}?watch=true", 5000, 10),
        (f"{PODS}?watch=true&resourceVersion=0", 5000, 10),
        (f"{PODS}?watch=true&resourceVersion=7", 5000, 1),
        (f"{PODS}?watch=true&resourceVersion=7&sendInitialEvents=true", 5000, 10),
        (f"{PODS}?fieldSelector=metadata.name%3Da", 5000, 1),
        (f"{PODS}?resourceVersion=7", 5000, 10),
        ("/api/v1/services", 5000, 1),
        ("/healthz", 5000, 1),
    ],
)
def test_a_list_takes_seats_by_how_much_it_reads(target: str, objects: int, seats: int) -> None:
    assert work_of(target, objects=objects) == WorkEstimate(seats)


@pytest.mark.parametrize(
    ("watchers", "work"),
    [
        (0, ONE_SEAT),
        (9, ONE_SEAT),
        (10, WorkEstimate(1, 0.005)),
        (11, WorkEstimate(2, 0.005)),
        (1000, WorkEstimate(10, 0.05)),
    ],
)
def test_a_write_takes_seats_by_how_many_watch_and_keeps_them_while_they_are_told(
    watchers: int, work: WorkEstimate
) -> None:
    for method, target in (("POST", PODS), ("PUT", f"{PODS}/a"), ("PATCH", f"{PODS}/a"), ("DELETE", f"{PODS}/a")):
        assert work_of(target, method, watchers=watchers) == work
    assert work_of(f"{PODS}/a", watchers=watchers) == ONE_SEAT
    assert work_of(f"{PODS}/a/token", "POST", watchers=watchers) == ONE_SEAT
    assert work_of("/api/v1/namespaces/ns/services", "POST", watchers=watchers) == ONE_SEAT


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def level(name: str, shares: int, **limits: Any) -> Json:
    limited = {"nominalConcurrencyShares": shares, "limitResponse": {"type": "Reject"}, **limits}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str, to: str, precedence: int, **spec: Any) -> Json:
    rules = [{"subjects": EVERYBODY, "resourceRules": ANYTHING}]
    whole = {"priorityLevelConfiguration": {"name": to}, "matchingPrecedence": precedence, "rules": rules, **spec}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": whole}


def controller(clock: Clock | None = None, *levels: Json) -> FlowController:
    made = FlowController(100, begin_at_once=4, now=clock or Clock())
    made.configure([], levels)
    return made


def test_a_level_lends_and_borrows_within_its_percentages() -> None:
    made = controller(None, level("a", 95, lendablePercent=40, borrowingLimitPercent=20), level("b", 100))
    a, b = made.levels["a"], made.levels["b"]
    assert (a.nominal, a.minimum, a.maximum) == (48, 29, 58)
    assert (b.nominal, b.minimum, b.maximum) == (50, 50, 150)
    assert made.levels["catch-all"].nominal == 3
    assert (made.levels["exempt"].nominal, made.levels["exempt"].is_exempt) == (0, True)


def test_a_busy_level_borrows_no_more_than_it_may_and_an_idle_one_keeps_what_it_does_not_lend() -> None:
    clock = Clock()
    made = controller(clock, level("busy", 50, borrowingLimitPercent=50), level("idle", 50, lendablePercent=80))
    busy, idle = made.levels["busy"], made.levels["idle"]
    busy.queues.use.enter((500, 0, 0, 0))
    clock.at += 10
    made.adjust()
    assert busy.queues.limit == busy.maximum == 72
    assert idle.minimum <= idle.queues.limit < idle.nominal
    busy.queues.use.enter((0, 0, 0, 0))
    idle.queues.use.enter((40, 0, 0, 0))
    clock.at += 10
    made.adjust()
    assert idle.queues.limit >= 40, "what it uses now it does not lend"


def test_what_the_exempt_use_is_not_given_out_again() -> None:
    clock = Clock()
    made = controller(clock, level("a", 50, lendablePercent=90))
    made.levels["a"].queues.use.enter((90, 0, 0, 0))
    clock.at += 10
    made.adjust()
    assert made.levels["a"].queues.limit > 80
    made.levels["exempt"].queues.use.enter((60, 0, 0, 0))
    clock.at += 10
    made.adjust()
    assert made.levels["exempt"].queues.limit == 60
    assert sum(level.queues.limit for level in made.levels.values()) in range(99, 104)


def test_a_level_that_is_deleted_stays_until_its_last_request_has_gone() -> None:
    made = controller(None, level("a", 50))
    running = Ticket(1)
    assert made.levels["a"].queues.start(running)
    made.configure([], [])
    assert made.levels["a"].quiescing
    made.configure([], [level("a", 20)])
    assert not made.levels["a"].quiescing
    assert list(made.levels["a"].queues.executing) == [running]
    made.configure([], [])
    made.levels["a"].queues.finish(running)
    made.configure([], [])
    assert "a" not in made.levels


def test_how_a_level_queues_follows_its_object() -> None:
    queuing = {"queues": 8, "handSize": 3, "queueLengthLimit": 5}
    made = controller(None, level("a", 50, limitResponse={"type": "Queue", "queuing": queuing}), level("b", 50))
    assert made.levels["a"].queues.queuing == Queuing(8, 3, 5)
    assert made.levels["b"].queues.queuing == Queuing(0)
    assert made.levels["exempt"].queues.queuing == Queuing(-1)


def test_the_schema_that_comes_first_decides_and_one_without_a_level_does_not_count() -> None:
    made = FlowController(100, begin_at_once=4)
    request = Request("GET", PODS, "", [], _no_body)
    info = request_info(request)
    late, early = schema("late", "a", 200), schema("early", "b", 100)
    made.configure([late, early], [level("a", 10), level("b", 10)])
    assert made.flow_of(User("x"), info).schema.name == "early"
    made.configure([late, early], [level("a", 10)])
    assert made.flow_of(User("x"), info).schema.name == "late", "there is no level b any more"
    made.configure([schema("z", "a", 100), schema("y", "a", 100)], [level("a", 10)])
    assert made.flow_of(User("x"), info).schema.name == "y", "names decide between equals"


def test_flows_are_told_apart_only_where_there_is_more_than_one_queue() -> None:
    by_user = schema("s", "a", 100, distinguisherMethod={"type": "ByUser"})
    info = request_info(Request("GET", PODS, "", [], _no_body))
    made = FlowController(100, begin_at_once=4)
    for queues, distinguisher in ((8, "x"), (1, "")):
        queuing = {"queues": queues, "handSize": 1, "queueLengthLimit": 5}
        made.configure([by_user], [level("a", 10, limitResponse={"type": "Queue", "queuing": queuing})])
        assert made.flow_of(User("x"), info).distinguisher == distinguisher


def test_a_flow_is_remembered_until_the_configuration_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.apiserver.flowcontrol.controller._REMEMBERED", 3)
    made = FlowController(100, begin_at_once=4)
    info = request_info(Request("GET", PODS, "", [], _no_body))
    first = made.flow_of(User("x"), info)
    assert made.flow_of(User("x"), info) is first
    assert made.flow_of(User("x", groups=("system:masters",)), info) is not first
    for name in "abcdef":
        made.flow_of(User(name), info)
    assert len(made._flows) <= 3
    made.configure([], [])
    assert made.flow_of(User("x"), info) is not first
