"""The console in a real browser, in front of a real server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import pytest

from pilothouse.client.config.model import ClientConfig
from pilothouse.console.page import BUILT
from pilothouse.console.server import Console
from pilothouse.testing import Server

_SOURCES = Path(__file__).parents[2] / "console"
_SCENARIOS = _SOURCES / "test" / "browser" / "scenarios.mjs"
_CHROMIUM = shutil.which("chromium")
_CAN_RUN = _CHROMIUM and shutil.which("node") and BUILT.is_dir() and (_SOURCES / "node_modules").is_dir()

pytestmark = pytest.mark.skipif(not _CAN_RUN, reason="this machine has no Chromium, or no Node.js to build the page")


def _names() -> list[str]:
    lines = (line.strip() for line in _SCENARIOS.read_text().splitlines())
    return [line.removesuffix('": {')[1:] for line in lines if line.startswith('"') and line.endswith('": {')]


async def _play(config: ClientConfig) -> dict[str, str]:
    """Return what went wrong in each scenario; nothing for those that went well."""
    console = Console(config)
    address = await console.start()
    words = [str(_SOURCES / "test" / "browser" / "run.mjs"), str(_CHROMIUM), address]
    words += [pictures] if (pictures := os.environ.get("PILOTHOUSE_PICTURES")) else []
    process = await asyncio.create_subprocess_exec("node", *words, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    await console.close()
    outcomes = [json.loads(line) for line in output.splitlines()]
    return {outcome["name"]: outcome["wrong"] for outcome in outcomes}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, str]]:
    with Server(recent_requests=100) as api:
        played: Future[dict[str, str]] = Future()
        thread = Thread(target=lambda: played.set_result(asyncio.run(_play(api.config()))))
        thread.start()
        yield played.result(100)
        thread.join()


@pytest.mark.parametrize("name", _names())
def test_in_chromium(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""
