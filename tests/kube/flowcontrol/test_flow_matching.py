"""Flow schemas and priority levels: whom a request belongs to, and how many seats each level has."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.mandatory import MANDATORY_LEVELS, MANDATORY_SCHEMAS
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.kube.flowcontrol.ensurer import SUGGESTED_LEVELS, SUGGESTED_SCHEMAS
from pilothouse.machinery.objects import Json


def named(specs: dict[str, Json]) -> list[Json]:
    return [{"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec} for name, spec in specs.items()]


@pytest.fixture
def controller() -> FlowController:
    made = FlowController(600, begin_at_once=4)
    made.configure(named({**SUGGESTED_SCHEMAS, **MANDATORY_SCHEMAS}), named({**SUGGESTED_LEVELS, **MANDATORY_LEVELS}))
    return made


def asking(verb: str = "get", **fields: Any) -> RequestInfo:
    resource = {"is_resource": True, "path": "/", "version": "v1", "resource": "pods", "namespace": "default"}
    return RequestInfo(
        verb=verb, **({**resource, **fields} if "path" not in fields else {"is_resource": False, **fields})
    )


@pytest.mark.parametrize(
    ("user", "info", "schema"),
    [
        (User("admin", groups=("system:masters",)), asking(), "exempt"),
        (User("system:node:a", groups=("system:nodes",)), asking(), "system-nodes"),
        (
            User("system:node:a", groups=("system:nodes",)),
            asking("update", resource="nodes", namespace=""),
            "system-node-high",
        ),
        (
            User("system:kube-controller-manager", groups=("system:authenticated",)),
            asking("update", group="coordination.k8s.io", resource="leases", namespace="kube-system"),
            "system-leader-election",
        ),
        (User("system:kube-scheduler", groups=("system:authenticated",)), asking(), "kube-scheduler"),
        (
            User("system:serviceaccount:default:x", groups=("system:serviceaccounts", "system:authenticated")),
            asking(),
            "service-accounts",
        ),
        (User("alice", groups=("system:authenticated",)), asking(), "global-default"),
        (User("system:anonymous", groups=("system:unauthenticated",)), asking(path="/healthz"), "probes"),
        (User("nobody"), asking(), "catch-all"),
    ],
)
def test_a_request_belongs_to_the_first_schema_that_has_a_rule_for_it(
    controller: FlowController, user: User, info: RequestInfo, schema: str
) -> None:
    assert controller.flow_of(user, info).schema.name == schema


def test_every_answer_can_say_to_which_schema_and_level_it_belonged(controller: FlowController) -> None:
    flow = controller.flow_of(User("alice", groups=("system:authenticated",)), asking())
    assert dict(flow.headers) == {
        b"x-kubernetes-pf-flowschema-uid": b"uid-global-default",
        b"x-kubernetes-pf-prioritylevel-uid": b"uid-global-default",
    }


def test_users_of_one_schema_are_told_apart(controller: FlowController) -> None:
    flows = [controller.flow_of(User(name, groups=("system:authenticated",)), asking()) for name in ("a", "b")]
    assert flows[0].entropy != flows[1].entropy


def test_each_level_has_its_share_of_the_seats(controller: FlowController) -> None:
    nominal = {name: level.nominal for name, level in controller.levels.items()}
    assert nominal == {
        "catch-all": 13,
        "exempt": 0,
        "global-default": 49,
        "leader-election": 25,
        "node-high": 98,
        "system": 74,
        "workload-high": 98,
        "workload-low": 245,
    }


def test_a_busy_level_borrows_what_the_others_do_not_need(controller: FlowController) -> None:
    busy = controller.levels["global-default"]
    busy.queues.use.enter((300, 0, 0, 0))
    controller.adjust()
    assert busy.queues.limit > 2 * busy.nominal
    others = [level for name, level in controller.levels.items() if name != "global-default"]
    assert all(level.queues.limit >= level.minimum for level in others)
    assert sum(level.queues.limit for level in controller.levels.values()) <= 600 + len(controller.levels)


def test_without_any_configuration_there_are_still_an_exempt_and_a_last_level() -> None:
    controller = FlowController(600, begin_at_once=4)
    assert controller.flow_of(User("admin", groups=("system:masters",)), asking()).level.is_exempt
    assert controller.flow_of(User("a", groups=("system:authenticated",)), asking()).level.name == "catch-all"


def test_a_level_that_nobody_wants_any_more_goes(controller: FlowController) -> None:
    controller.configure([], [])
    assert set(controller.levels) == {"exempt", "catch-all"}
