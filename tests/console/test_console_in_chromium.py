"""The console in a real browser, in front of a real server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
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


_BENCH = "bench: "
"""Prefix of scenarios that need a server with --testing."""
EXPORTED = "exported"
"""Key of the exported test in the outcomes."""
_NAME = re.compile(r'^  "([^"]+)": \{$', re.MULTILINE)


def _names() -> list[str]:
    files = sorted((_SCENARIOS / "scenarios").glob("*.mjs"))
    return [name for file in files for name in _NAME.findall(file.read_text())]


async def _play(config: ClientConfig, project: Path, scenarios: str) -> dict[str, str]:
    """Return the error of each scenario whose name matches; "" for success. Scenarios may ask to stop and start the
    console, and to keep a text.
    """
    console = Console(config)
    address = await console.start()
    port = urlsplit(address).port or 0
    words = [str(project / "run.mjs"), str(_CHROMIUM), address]
    words += [pictures] if (pictures := os.environ.get("PILOTHOUSE_PICTURES")) else []
    pipe = asyncio.subprocess.PIPE
    environment = {"PILOTHOUSE_SCENARIO": scenarios} | os.environ
    process = await asyncio.create_subprocess_exec(
        "node", *words, stdin=pipe, stdout=pipe, env=environment, limit=1 << 22
    )
    assert process.stdin is not None
    assert process.stdout is not None
    outcomes: dict[str, str] = {}
    async for line in process.stdout:
        message = json.loads(line)
        if "name" in message:
            outcomes[message["name"]] = message["wrong"]
            continue
        if isinstance(message["ask"], dict):
            outcomes[EXPORTED] = message["ask"]["keep"]
        elif message["ask"] == "stop the console":
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


def _outcomes(project: Path, scenarios: str, *, testing: bool) -> Iterator[dict[str, str]]:
    with Server(testing=testing, recent_requests=500, simulated_nodes=1, authorization_mode="RBAC") as api:
        played: Future[dict[str, str]] = Future()
        thread = Thread(target=lambda: played.set_result(asyncio.run(_play(api.config(), project, scenarios))))
        thread.start()
        yield played.result(6 * PATIENCE)
        thread.join()


@pytest.fixture(scope="module")
def outcomes(project: Path) -> Iterator[dict[str, str]]:
    yield from _outcomes(project, f"^(?!{_BENCH})", testing=False)


@pytest.fixture(scope="module")
def bench_outcomes(project: Path) -> Iterator[dict[str, str]]:
    yield from _outcomes(project, f"^{_BENCH}", testing=True)


@pytest.mark.parametrize("name", [name for name in _names() if not name.startswith(_BENCH)])
def test_in_chromium(outcomes: dict[str, str], name: str) -> None:
    assert outcomes.get(name, "the scenario did not run") == ""


@pytest.mark.parametrize("name", [name for name in _names() if name.startswith(_BENCH)])
def test_bench_in_chromium(bench_outcomes: dict[str, str], name: str) -> None:
    assert bench_outcomes.get(name, "the scenario did not run") == ""


def test_a_recording_of_the_page_is_exported_as_a_test_that_passes(
    bench_outcomes: dict[str, str], tmp_path: Path
) -> None:
    exported = tmp_path / "test_exported.py"
    exported.write_text(bench_outcomes[EXPORTED])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(exported)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{exported.read_text()}\n{done.stdout}\n{done.stderr}"
