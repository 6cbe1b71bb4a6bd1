"""Impersonation that roles give, asked of the real RBAC authorizer: each part of the other user is a resource."""

from __future__ import annotations

import pytest
from filter_requests import make_request
from rbac_store import allow, binding, role, user

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.impersonation import with_impersonation
from pilothouse.apiserver.http import Request, Response
from pilothouse.kube.rbac.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json

AUTHENTICATION = "authentication.k8s.io"
MANY_GROUPS = [("Impersonate-Group", f"g{number}") for number in range(4)]
MANY_EXTRA = [(f"Impersonate-Extra-K{number}", "v") for number in range(4)]


def authorizer_of(rules: list[Json]) -> RBACAuthorizer:
    """Alice is given the rules in the whole cluster."""
    policy = RBACPolicy()
    policy.ready = True
    policy.put_role(role("impersonator", *rules))
    policy.put_binding(binding("b", "impersonator", user("alice")))
    return RBACAuthorizer(policy)


def asking(*headers: tuple[str, str]) -> Request:
    request = make_request()()
    request.headers = [(name.lower().encode(), value.encode()) for name, value in headers]
    return request


async def answer(request: Request) -> Response:
    return Response(200)


async def impersonate(rules: list[Json], *headers: tuple[str, str]) -> User:
    """Whom alice becomes. Raises Forbidden."""
    request = asking(*headers)
    await with_impersonation(authorizer_of(rules))(answer)(request)
    return request.user


def narrowly(mode: str, *parts: Json) -> list[Json]:
    """What a constrained mode needs to get configmaps."""
    return [allow(f"impersonate-on:{mode}:get", "configmaps"), *parts]


def part(mode: str, resources: str, *names: str) -> Json:
    return allow(f"impersonate:{mode}", resources, *names, group=AUTHENTICATION)


BOB = ("Impersonate-User", "bob")


@pytest.mark.parametrize(
    ("rules", "headers", "name"),
    [
        ([allow("impersonate", "users", "bob")], [BOB], "bob"),
        ([allow("impersonate", "users groups")], [BOB, ("Impersonate-Group", "dev")], "bob"),
        (
            [allow("impersonate", "users"), allow("impersonate", "uids", "7", group=AUTHENTICATION)],
            [BOB, ("Impersonate-Uid", "7")],
            "bob",
        ),
        (
            [allow("impersonate", "users"), allow("impersonate", "userextras/scopes", "a", group=AUTHENTICATION)],
            [BOB, ("Impersonate-Extra-Scopes", "a")],
            "bob",
        ),
        (
            [allow("impersonate", "serviceaccounts", "robot")],
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            "system:serviceaccount:ns:robot",
        ),
        (narrowly("user-info", part("user-info", "users", "bob")), [BOB], "bob"),
        (
            narrowly("user-info", part("user-info", "users"), part("user-info", "groups")),
            [BOB, *MANY_GROUPS],
            "bob",
        ),
        (
            narrowly("user-info", part("user-info", "users"), part("user-info", "userextras/*")),
            [BOB, *MANY_EXTRA],
            "bob",
        ),
        (
            narrowly("arbitrary-node", part("arbitrary-node", "nodes", "n1")),
            [("Impersonate-User", "system:node:n1")],
            "system:node:n1",
        ),
        (
            narrowly("serviceaccount", part("serviceaccount", "serviceaccounts", "robot")),
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            "system:serviceaccount:ns:robot",
        ),
    ],
)
async def test_a_role_gives_the_user_and_the_parts_that_it_names(
    rules: list[Json], headers: list[tuple[str, str]], name: str
) -> None:
    assert (await impersonate(rules, *headers)).name == name


@pytest.mark.parametrize(
    ("rules", "headers"),
    [
        ([], [BOB]),
        ([allow("impersonate", "users", "carol")], [BOB]),
        ([allow("impersonate", "users", group=AUTHENTICATION)], [BOB]),
        ([allow("get", "users", "bob")], [BOB]),
        ([allow("impersonate", "users")], [BOB, ("Impersonate-Group", "dev")]),
        ([allow("impersonate", "users groups")], [BOB, ("Impersonate-Uid", "7")]),
        (
            [allow("impersonate", "users"), allow("impersonate", "uids", "8", group=AUTHENTICATION)],
            [BOB, ("Impersonate-Uid", "7")],
        ),
        (
            [allow("impersonate", "users"), allow("impersonate", "userextras/scopes", "a", group=AUTHENTICATION)],
            [BOB, ("Impersonate-Extra-Scopes", "a"), ("Impersonate-Extra-Scopes", "b")],
        ),
        (
            [allow("impersonate", "users"), allow("impersonate", "userextras/scopes", group=AUTHENTICATION)],
            [BOB, ("Impersonate-Extra-Other", "a")],
        ),
        ([allow("impersonate", "users")], [("Impersonate-User", "system:serviceaccount:ns:robot")]),
        ([part("user-info", "users", "bob")], [BOB]),
        (narrowly("user-info", part("user-info", "users", "bob")), [BOB, ("Impersonate-Group", "dev")]),
        (narrowly("user-info", part("user-info", "users", "bob")), [("Impersonate-User", "system:node:n1")]),
        (narrowly("user-info", part("user-info", "users groups", "bob", "g0")), [BOB, *MANY_GROUPS]),
        (narrowly("user-info", part("user-info", "users groups")), [BOB, ("Impersonate-Group", "")]),
        (
            narrowly("user-info", part("user-info", "users userextras/*")),
            [BOB, ("Impersonate-Extra-Scopes", "")],
        ),
        (narrowly("arbitrary-node", part("arbitrary-node", "nodes", "n2")), [("Impersonate-User", "system:node:n1")]),
    ],
)
async def test_what_no_role_gives_is_refused(rules: list[Json], headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Forbidden):
        await impersonate(rules, *headers)


@pytest.mark.parametrize(
    ("name", "groups", "standing"),
    [
        ("bob", [], ("system:authenticated",)),
        ("bob", ["system:authenticated"], ("system:authenticated",)),
        ("bob", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("system:anonymous", [], ("system:unauthenticated",)),
        ("system:anonymous", ["system:unauthenticated"], ("system:unauthenticated",)),
    ],
)
async def test_whoever_is_impersonated_is_either_authenticated_or_not(
    name: str, groups: list[str], standing: tuple[str, ...]
) -> None:
    headers = [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]
    assert (await impersonate([allow("impersonate", "users groups")], *headers)).groups == standing


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        (
            [("Impersonate-User", "eve")],
            'users "eve" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster '
            "scope",
        ),
        (
            [BOB, ("Impersonate-Uid", "7")],
            'uids.authentication.k8s.io "7" is forbidden: User "alice" cannot impersonate resource "uids" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
        (
            [BOB, ("Impersonate-Extra-Scopes", "a")],
            'userextras.authentication.k8s.io "a" is forbidden: User "alice" cannot impersonate resource '
            '"userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
        ),
    ],
)
async def test_who_has_impersonated_by_the_legacy_verb_is_refused_by_that_verb(
    headers: list[tuple[str, str]], refusal: str
) -> None:
    handler = with_impersonation(authorizer_of([allow("impersonate", "users", "bob")]))(answer)
    with pytest.raises(Forbidden, match="impersonate-on:user-info:get"):
        await handler(asking(*headers))
    await handler(asking(BOB))
    with pytest.raises(Forbidden) as refused:
        await handler(asking(*headers))
    assert refused.value.message == refusal
