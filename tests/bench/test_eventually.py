"""Waiting for conditions: woken by changes, with a report on failure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from patience import PATIENCE

from pilothouse.errors import NotFound
from pilothouse.testing import API, Server


@pytest.mark.asyncio(loop_scope="module")
async def test_a_condition_is_evaluated_after_a_change(api: API) -> None:
    config_maps = api.client().resource("v1", "configmaps", namespace="default")
    evaluations = 0

    async def data() -> Any:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 2:
            await config_maps.create({"metadata": {"name": "later"}, "data": {"a": "b"}})
        return (await config_maps.get("later"))["data"]

    assert await api.eventually(data, within=PATIENCE) == {"a": "b"}
    assert await api.eventually(lambda: evaluations) == evaluations


@pytest.mark.asyncio(loop_scope="module")
async def test_other_exceptions_are_raised_at_once(api: API) -> None:
    with pytest.raises(ZeroDivisionError):
        await api.eventually(lambda: 1 / 0, within=PATIENCE)


def test_the_failure_says_what_happened_during_the_wait() -> None:
    with Server(testing=True, recent_requests=100) as api, api.client() as client:
        config_maps = client.resource("v1", "configmaps", namespace="default")
        config_maps.create({"metadata": {"name": "before"}})
        api.settle()

        def is_there() -> Any:
            for _ in range(4):
                config_maps.patch("before", {"data": {"tried": "yes"}})
                api.request("GET", "/api/v1/namespaces/default/configmaps/later")
            return config_maps.get("later")

        with pytest.raises(AssertionError, match=r"is_there did not hold within 0\.3 s") as failure:
            api.eventually(is_there, within=0.3)
        assert isinstance(failure.value.__cause__, NotFound)
        notes = "\n".join(failure.value.__notes__)
        assert "changed ConfigMap default/before" in notes
        assert "+  tried: 'yes'" in notes
        assert "GET /api/v1/namespaces/default/configmaps/later" in notes
        assert re.search("more times? the last 2 lines", notes)
        with pytest.raises(AssertionError, match="the last value is None; return a true value"):
            api.eventually(lambda: None, within=0.0)
