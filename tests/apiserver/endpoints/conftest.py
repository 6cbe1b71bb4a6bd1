from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from in_process import InProcessServer, in_process_server


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[InProcessServer]:
    async with in_process_server(tmp_path / "data") as server:
        yield server
