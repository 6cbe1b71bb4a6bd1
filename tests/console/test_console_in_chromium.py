"""The console in a real browser, in front of a real server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from node_packages import NO_REGISTRY, Unreachable, installed, node_is_there
from patience import PATIENCE

from pilothouse.client.config.model import ClientConfig
from pilothouse.console.page import BUILT
from pilothouse.console.server import Console
from pilothouse.testing import Server

_SCENARIOS = Path(__file__).parents[2] / "console" / "test" / "browser"
_CHROMIUM = shutil.which("chromium")
_CAN_RUN = _CHROMIUM and node_is_there() and BUILT.is_dir()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _CAN_RUN, reason="this machine has no Chromium, or no Node.js to build the page"),
]


_NAME = re.compile(r'^  "([^"]+)": \{$', re.MULTILINE)


def _names() -> list[str]:
    files = sorted((_SCENARIOS / "scenarios").glob("*.mjs"))
    return [name for file in files for name in _NAME.findall(file.read_text())]


async def _play(config: ClientConfig, project: Path) -> dict[str, str]:
    """Return what went wrong in each scenario; "" for success. Scenarios may ask to stop and start the console."""
    console = Console(config)
    address = await console.start()
    port = urlsplit(address).port or 0
    words = [str(project / "run.mjs"), str(_CHROMIUM), address]
    words += [pictures] if (pictures := os.environ.get("PILOTHOUSE_PICTURES")) else []
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("node", *words, stdin=pipe, stdout=pipe, limit=1 << 22)
    assert process.stdin is not None
    assert process.stdout is not None
    outcomes: dict[str, str] = {}
    async for line in process.stdout:
        message = json.loads(line)
        if "name" in message:
            outcomes[message["name"]] = message["wrong"]
            continue
        if message["ask"] == "stop the console":
            await console.close()
        else:
            console = Console(config, port=port)
            await console.start()
        process.stdin.write(b"done\n")
    await process.wait()
    await console.close()
    return outcomes


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the scenarios with playwright-core, which is kept between runs."""
    try:
        packages = installed(_SCENARIOS / "package.json")
    except Unreachable:
        pytest.skip(NO_REGISTRY)
    project = tmp_path_factory.mktemp("browser") / "project"
    shutil.copytree(_SCENARIOS, project)
    (project / "node_modules").symlink_to(packages)
    return project


@pytest.fixture(scope="module")
def outcomes(project: Path) -> Iterator[dict[str, str]]:
    with Server(recent_requests=500, simulated_nodes=1, authorization_mode="RBAC") as api:
        played: Future[dict[str, str]] = Future()
        thread = Thread(target=lambda: played.set_result(asyncio.run(_play(api.config(), project))))
        thread.start()
        yield played.result(6 * PATIENCE)
        thread.join()


@pytest.mark.parametrize("name", _names())
def test_in_chromium(outcomes: dict[str, str], name: str) -> None:
    assert outcomes.get(name, "the scenario did not run") == ""
