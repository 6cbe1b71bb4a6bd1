"""clusterrole-aggregation-controller: aggregated roles have the rules of the roles that they select."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

PART = "example.com/part"
READ, WRITE, LOOK = (
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update"]},
    {"nonResourceURLs": ["/look"], "verbs": ["get"]},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    folder = tmp_path_factory.mktemp("roles")
    async with controlled_server(folder) as server, managed(server, "clusterrole-aggregation"):
        yield server


@pytest.fixture
def roles(server: ControlledServer) -> ResourceClient:
    return server.client.resource("rbac.authorization.k8s.io/v1", "clusterroles")


def part(name: str, of: str, *rules: Json) -> Json:
    return {"metadata": {"name": name, "labels": {PART: of}}, "rules": list(rules)}


def whole(name: str, *of: str, rules: Any = None, labels: Json | None = None) -> Json:
    selectors = [{"matchLabels": {PART: each}} for each in of]
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "aggregationRule": {"clusterRoleSelectors": selectors},
        "rules": rules,
    }


def has_rules(*rules: Json) -> Any:
    return lambda role: (role["rules"] or []) == list(rules)


async def test_the_roles_for_users_have_the_rules_of_their_parts(roles: ResourceClient) -> None:
    named = {role["metadata"]["name"]: role for role in (await roles.list())["items"]}
    parts = {name: named[f"system:aggregate-to-{name}"]["rules"] for name in ("admin", "edit", "view")}

    def covers(role: Json, *names: str) -> bool:
        return all(rule in (role["rules"] or ()) for name in names for rule in parts[name])

    await until(roles, "view", lambda role: covers(role, "view"))
    await until(roles, "edit", lambda role: covers(role, "view", "edit"))
    admin = await until(roles, "admin", lambda role: covers(role, "view", "edit", "admin"))
    assert all(admin["rules"].count(rule) == 1 for rule in admin["rules"])


async def test_rules_come_once_in_the_order_of_selectors_and_names(roles: ResourceClient) -> None:
    await roles.create(part("b-of-one", "one", READ, LOOK))
    await roles.create(part("a-of-one", "one", WRITE))
    await roles.create(part("a-of-two", "two", LOOK, READ))
    await roles.create(whole("ordered", "two", "one", rules=[{**READ, "verbs": ["delete"]}]))
    made = await until(roles, "ordered", has_rules(LOOK, READ, WRITE))
    managers = {each["manager"]: each for each in made["metadata"]["managedFields"]}
    assert managers["clusterrole-aggregation-controller"]["operation"] == "Apply"
    assert "f:rules" in managers["clusterrole-aggregation-controller"]["fieldsV1"]


async def test_rules_follow_the_parts_as_they_come_change_and_go(roles: ResourceClient) -> None:
    await roles.create(whole("followed", "follow"))
    await roles.create(part("follow-a", "follow", READ))
    await until(roles, "followed", has_rules(READ))
    await roles.patch("follow-a", {"rules": [WRITE]})
    await until(roles, "followed", has_rules(WRITE))
    await roles.patch("followed", {"rules": [READ, LOOK]})
    await until(roles, "followed", has_rules(WRITE))
    await roles.delete("follow-a")
    await until(roles, "followed", has_rules())


async def test_an_aggregated_role_can_be_a_part_of_another_but_never_of_itself(roles: ResourceClient) -> None:
    await roles.create(whole("outer", "outer"))
    await roles.create(whole("inner", "inner", labels={PART: "outer"}))
    await roles.create(whole("loop", "inner", labels={PART: "inner"}))
    await roles.create(part("leaf", "inner", READ))
    for name in ("loop", "inner", "outer"):
        await until(roles, name, has_rules(READ))


async def test_a_role_that_aggregates_nothing_is_left_alone(roles: ResourceClient) -> None:
    await roles.create(part("alone", "nobody", READ))
    await roles.create(whole("witness", "nobody"))
    await until(roles, "witness", has_rules(READ))
    assert (await roles.get("alone"))["rules"] == [READ]
