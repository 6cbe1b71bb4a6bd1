"""The console's page as a build of the package makes it: with npm, without it, and without a network."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from node_packages import NO_NODE, node_is_there
from patience import PATIENCE

from tools.console_page import NotBuilt, build_page

CONSOLE = Path(__file__).parents[2] / "console"
PACKAGES: dict[str, dict[str, Any]] = json.loads((CONSOLE / "package-lock.json").read_text())["packages"]


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """The sources, without any package."""
    return Path(shutil.copytree(CONSOLE, tmp_path / "console", ignore=shutil.ignore_patterns("node_modules")))


@pytest.fixture
def silent_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[socket.socket]]:
    """A registry that accepts connections and never answers: the connections that were made to it."""
    connections: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connections.append(listener.accept()[0])
            except OSError:
                return

    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{listener.getsockname()[1]}/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    thread = Thread(target=accept, args=[listener])
    thread.start()
    yield connections
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for connection in connections:
        connection.close()


def test_without_npm_the_page_is_not_built(console: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotBuilt, match=r"^npm was not found$"):
        build_page(console, tmp_path / "page")


def test_a_page_that_is_newer_than_its_sources_needs_no_npm(
    console: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").touch()
    build_page(console, page)
    os.utime(page / "index.html", (0, 0))
    with pytest.raises(NotBuilt):
        build_page(console, page)


@pytest.mark.skipif(not node_is_there(), reason=NO_NODE)
def test_a_registry_that_never_answers_is_given_up_and_npm_is_ended(
    console: Path, silent_registry: list[socket.socket], tmp_path: Path
) -> None:
    with pytest.raises(NotBuilt, match=r"^`npm ci` made no progress for 2 s$"):
        build_page(console, tmp_path / "page", patience=2)
    for connection in [*silent_registry]:
        connection.settimeout(PATIENCE)
        while connection.recv(65536):  # ends when npm's last process does
            pass


def tell(*around: str, session: bool = False) -> bytes:
    """Return the output of a process around a process that tells the installer something and whose output is lost."""
    code = "from tools.console_page import tell_installer; tell_installer('no page')"
    words = [*around, "sh", "-c", f'exec "{sys.executable}" -c "{code}" > /dev/null 2>&1']
    return subprocess.check_output(words, cwd=CONSOLE.parent, stdin=subprocess.DEVNULL, start_new_session=session)


def test_the_terminal_shows_the_message_though_pip_hides_the_output() -> None:
    assert b"no page" in tell(sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])")


def test_without_a_terminal_nothing_is_shown_and_nothing_fails() -> None:
    assert tell(session=True) == b""


def test_the_lock_file_names_only_the_public_registry() -> None:
    elsewhere = [
        name
        for name, package in PACKAGES.items()
        if name and not package["resolved"].startswith("https://registry.npmjs.org/")
    ]
    assert elsewhere == []


def test_the_lock_file_has_the_packages_of_every_platform() -> None:
    """`npm ci` refuses a lock file that lacks some of them."""
    optional = {name for package in PACKAGES.values() for name in package.get("optionalDependencies", {})}
    assert len([name for name in optional if name.startswith("@esbuild/")]) > 20
    assert [name for name in optional if f"node_modules/{name}" not in PACKAGES] == []


def test_a_build_installs_esbuild_and_no_development_tool() -> None:
    installed = {name.removeprefix("node_modules/") for name, package in PACKAGES.items() if not package.get("dev")}
    assert "esbuild" in installed
    assert not installed & {"typescript", "vite", "vitest", "playwright-core", "rollup"}
