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
from node_packages import NO_REGISTRY, Unreachable, installed, node_is_there
from patience import PATIENCE

from pilothouse.client.config.model import ClientConfig
from pilothouse.console.page import BUILT
from pilothouse.console.server import Console
from pilothouse.testing import Server

_SCENARIOS = Path(__file__).parents[2] / "console" / "test" / "browser"
_CHROMIUM = shutil.which("chromium")
_CAN_RUN = _CHROMIUM and node_is_there() and BUILT.is_dir()

pytestmark = pytest.mark.skipif(not _CAN_RUN, reason="this machine has no Chromium, or no Node.js to build the page")


def _names() -> list[str]:
    lines = (line.strip() for line in (_SCENARIOS / "scenarios.mjs").read_text().splitlines())
    return [line.removesuffix('": {')[1:] for line in lines if line.startswith('"') and line.endswith('": {')]


async def _play(config: ClientConfig, project: Path) -> dict[str, str]:
    """Return what went wrong in each scenario; nothing for those that went well."""
    console = Console(config)
    address = await console.start()
    words = [str(project / "run.mjs"), str(_CHROMIUM), address]
    words += [pictures] if (pictures := os.environ.get("PILOTHOUSE_PICTURES")) else []
    process = await asyncio.create_subprocess_exec("node", *words, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    await console.close()
    outcomes = [json.loads(line) for line in output.splitlines()]
    return {outcome["name"]: outcome["wrong"] for outcome in outcomes}


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
    with Server(recent_requests=100) as api:
        played: Future[dict[str, str]] = Future()
        thread = Thread(target=lambda: played.set_result(asyncio.run(_play(api.config(), project))))
        thread.start()
        yield played.result(2 * PATIENCE)
        thread.join()


@pytest.mark.parametrize("name", _names())
def test_in_chromium(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""
