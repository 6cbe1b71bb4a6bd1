"""Fuzzing: whatever a client sends is answered, in bounded time, and never by an error that nobody expected.

It is part of the ordinary test run, with few examples; fuzz_budget.py says how to run it for longer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fuzz_budget import FACTOR
from whole_server import whole_server

from pilothouse.testing import API


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    """One server for a module: what one example leaves behind must not harm the next."""
    async with whole_server(tmp_path_factory.mktemp("data")) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long run is long: no test of it is ended by the clock."""
    if FACTOR > 1:
        for item in items:
            item.add_marker(pytest.mark.timeout(0))
