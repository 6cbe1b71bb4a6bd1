"""Pods that are made from templates, a few at first."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.controllers.workloads.pod_control import SlowStartError, pod_from_template, slow_start

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "ns", "uid": "1"}}


def test_a_pod_of_a_template_has_its_labels_its_spec_and_its_owner() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    assert pod_from_template(template, OWNER) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-",
            "labels": {"app": "web"},
            "annotations": {},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"containers": []},
    }


async def test_batches_double_while_all_goes_well() -> None:
    running = 0
    at_once: list[int] = []

    async def do() -> None:
        nonlocal running
        running += 1
        await asyncio.sleep(0)
        at_once.append(running)
        await asyncio.sleep(0)
        running -= 1

    assert await slow_start(10, do) == 10
    assert at_once == [1, *[2] * 2, *[4] * 4, *[3] * 3]


async def test_the_first_failure_ends_it_and_says_how_often_it_went_well() -> None:
    calls = 0

    async def do() -> None:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise ValueError("no more")

    with pytest.raises(SlowStartError, match="no more") as raised:
        await slow_start(100, do)
    assert (raised.value.succeeded, calls) == (2, 3)


async def test_work_that_is_no_longer_wanted_ends_with_its_batch() -> None:
    calls = 0

    async def do() -> None:
        nonlocal calls
        calls += 1

    assert await slow_start(20_000_000, do, goes_on=lambda: calls < 1000) == calls
    assert calls in range(1000, 1064)


async def test_nothing_is_done_no_times() -> None:
    async def do() -> None:
        raise AssertionError

    assert await slow_start(0, do) == 0
