"""A server, and the kind of the issue's example."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilothouse.testing import API, server


@pytest.fixture
async def api() -> AsyncIterator[API]:
    async with server() as running:
        yield running
