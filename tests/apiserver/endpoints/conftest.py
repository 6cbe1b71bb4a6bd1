from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.testing import API


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path / "data") as server:
        yield server
