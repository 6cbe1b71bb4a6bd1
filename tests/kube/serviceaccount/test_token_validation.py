"""A rightly signed token is good while it is in time and what it speaks of is there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from service_account_tokens import NOON, ROBOT, Objects, SetClock, claims, named

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator, TokenBinding, user_of
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time

POD, NODE, SECRET = named("p", "u-p"), named("n", "u-n"), named("s", "u-s")
LONG_AGO = format_time(NOON - timedelta(seconds=61))
JUST_NOW = format_time(NOON - timedelta(seconds=60))
EXTRA = "authentication.kubernetes.io"


async def validated(token: Json, known: dict[tuple[str, str], Json] | None = None, *, after: float = 0) -> Json:
    """The name, uid, groups and extra of the user."""
    objects = Objects()
    objects.known |= known or {}
    await BoundTokenValidator(objects, SetClock(NOON + timedelta(seconds=after))).validate(token)
    user = user_of(token)
    return {"name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra}


async def test_the_user_is_the_account_with_its_groups() -> None:
    token = claims()
    assert await validated(token) == {
        "name": "system:serviceaccount:ns:robot",
        "uid": "u-robot",
        "groups": ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        "extra": {f"{EXTRA}/credential-id": (f"JTI={token['jti']}",)},
    }


@pytest.mark.parametrize("after", [-60, 0, 660])
async def test_a_minute_is_forgiven_at_both_ends(after: float) -> None:
    await validated(claims(), after=after)


@pytest.mark.parametrize(
    ("after", "why"), [(-61, "service account token is not valid yet"), (661, "service account token has expired")]
)
async def test_a_token_is_refused_out_of_its_time(after: float, why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        await validated(claims(), after=after)


async def test_a_token_from_the_future_is_refused() -> None:
    token = claims()
    del token["nbf"]
    with pytest.raises(InvalidToken, match="service account token is issued in the future"):
        await validated(token, after=-61)


async def test_a_pods_token_tells_pod_and_node_and_needs_the_pod_alone() -> None:
    user = await validated(claims(TokenBinding(pod=POD, node=NODE)), {("pod", "p"): POD})
    del user["extra"][f"{EXTRA}/credential-id"]
    assert user["extra"] == {
        f"{EXTRA}/node-name": ("n",),
        f"{EXTRA}/node-uid": ("u-n",),
        f"{EXTRA}/pod-name": ("p",),
        f"{EXTRA}/pod-uid": ("u-p",),
    }


async def test_a_nodes_token_tells_the_node_and_a_secrets_nothing() -> None:
    node = await validated(claims(TokenBinding(node=NODE)), {("node", "n"): NODE})
    assert node["extra"][f"{EXTRA}/node-name"] == ("n",)
    secret = await validated(claims(TokenBinding(secret=SECRET)), {("secret", "s"): SECRET})
    assert set(secret["extra"]) == {f"{EXTRA}/credential-id"}


@pytest.mark.parametrize(
    ("account", "why"),
    [
        (None, 'serviceaccounts "robot" not found'),
        (named("robot", "other"), r"service account UID \(other\) does not match claim \(u-robot\)"),
        (named("robot", "u-robot", deletionTimestamp=LONG_AGO), "service account ns/robot has been deleted"),
    ],
)
async def test_a_token_dies_with_its_account(account: Json, why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        await validated(claims(), {("serviceaccount", "robot"): account})


@pytest.mark.parametrize(
    ("kind", "binding"),
    [("pod", TokenBinding(pod=POD)), ("node", TokenBinding(node=NODE)), ("secret", TokenBinding(secret=SECRET))],
)
async def test_a_token_dies_with_what_it_is_bound_to(kind: str, binding: TokenBinding) -> None:
    token, name = claims(binding), kind[0]
    with pytest.raises(InvalidToken, match="service account token has been invalidated"):
        await validated(token)
    with pytest.raises(InvalidToken, match="service account token has been invalidated"):
        await validated(token, {(kind, name): named(name, f"u-{name}", deletionTimestamp=LONG_AGO)})
    why = rf"{kind} UID \(other\) does not match service account {kind} ref claim \(u-{name}\)"
    with pytest.raises(InvalidToken, match=why):
        await validated(token, {(kind, name): named(name, "other")})


@pytest.mark.parametrize(
    ("after", "counter"), [(300, "serviceaccount_valid_tokens_total"), (301, "serviceaccount_stale_tokens_total")]
)
async def test_uses_of_a_pods_token_are_counted_by_whether_it_should_have_been_renewed(
    after: float, counter: str
) -> None:
    token, before = claims(), REGISTRY.get_sample_value(counter) or 0
    token["kubernetes.io"]["warnafter"] = int(NOON.timestamp()) + 300
    await validated(token, after=after)
    assert REGISTRY.get_sample_value(counter) == before + 1


async def test_what_was_deleted_just_now_still_counts() -> None:
    deleted = {"metadata": {**ROBOT["metadata"], "deletionTimestamp": JUST_NOW}}
    await validated(claims(), {("serviceaccount", "robot"): deleted})
