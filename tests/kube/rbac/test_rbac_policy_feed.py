"""The policy follows what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from patience import PATIENCE
from rbac_store import RBACStore, allow, binding, rbac_store, role, user

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes, Decision
from pilothouse.kube.rbac.authorizer import PolicyFeed, RBACAuthorizer

GET_PODS = Attributes(User("jane"), "get", is_resource=True, resource="pods", namespace="a")


@pytest.fixture
async def rbac(tmp_path: Path) -> AsyncIterator[RBACStore]:
    async with rbac_store(tmp_path) as opened:
        yield opened


async def _allowed(rbac: RBACStore) -> bool:
    return (await RBACAuthorizer(rbac.policy).authorize(GET_PODS)).decision is Decision.ALLOW


async def _grant(rbac: RBACStore) -> None:
    await rbac.access("Role").create(role("reader", allow("get", "pods"), namespace="a"))
    await rbac.access("RoleBinding").create(binding("b", "reader", user("jane"), namespace="a", kind="Role"))


async def test_what_was_stored_before_counts_from_the_start(rbac: RBACStore) -> None:
    await _grant(rbac)
    assert not await _allowed(rbac)
    await rbac.feed()
    assert await _allowed(rbac)


async def test_what_is_written_counts_once_the_feed_has_caught_up(rbac: RBACStore) -> None:
    feed = await rbac.feed()
    await _grant(rbac)
    await feed.catch_up()
    assert await _allowed(rbac)
    await rbac.access("RoleBinding").delete("b", namespace="a")
    await feed.catch_up()
    assert not await _allowed(rbac)


async def test_nobody_needs_to_ask_for_it(rbac: RBACStore) -> None:
    await rbac.feed()
    await _grant(rbac)
    async with asyncio.timeout(PATIENCE):
        while not await _allowed(rbac):  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)


async def test_a_watch_that_breaks_off_begins_again_with_a_list(rbac: RBACStore) -> None:
    await _grant(rbac)
    feed = await rbac.feed()
    _break_off(feed)
    await rbac.access("RoleBinding").delete("b", namespace="a")
    async with asyncio.timeout(PATIENCE):
        while await _allowed(rbac):  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)
    await rbac.access("RoleBinding").create(binding("b", "reader", user("jane"), namespace="a", kind="Role"))
    await feed.catch_up()
    assert await _allowed(rbac)


def _break_off(feed: PolicyFeed) -> None:
    for source in feed._followers:
        assert source._watcher is not None
        source._watcher.close()
