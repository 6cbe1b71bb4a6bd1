"""/logs, where --enable-logs-handler asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.kube import log_files
from pilothouse.testing import API


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[API]:
    (tmp_path / "apt").mkdir()
    (tmp_path / "kube.log").write_bytes(b"line\n" * 100_000)
    (tmp_path / "a&b").write_bytes(b"")
    monkeypatch.setattr(log_files.install_log_files, "__defaults__", (tmp_path,))
    async with whole_server(enable_logs_handler="true") as api:
        yield api


async def test_files_are_listed_and_read(api: API) -> None:
    listing = await api.request("GET", "/logs/", accept="*/*")
    links = '<a href="a%26b">a&amp;b</a>\n<a href="apt/">apt/</a>\n<a href="kube.log">kube.log</a>\n'
    head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n'
    assert (listing.status, listing.body.decode()) == (200, f"{head}<pre>\n{links}</pre>\n")
    file = await api.request("GET", "/logs/kube.log", accept="*/*")
    assert (file.status, file.body) == (200, b"line\n" * 100_000)
    assert (file.headers["content-type"], file.headers["content-length"]) == ("text/x-log; charset=utf-8", "500000")


@pytest.mark.parametrize(
    ("path", "status", "location"), [("/logs", 301, "logs/"), ("/logs/apt", 301, "apt/"), ("/logs/apt/", 200, None)]
)
async def test_directories_end_in_a_slash(api: API, path: str, status: int, location: str | None) -> None:
    answer = await api.request("GET", path, accept="*/*")
    assert (answer.status, answer.headers.get("location")) == (status, location)


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/logs/nope", "*/*", 404),
        ("GET", "/logs/..%2f..%2fetc/passwd", "*/*", 400),
        ("POST", "/logs/kube.log", "*/*", 405),
        ("GET", "/logs/kube.log", "application/json", 406),
        ("GET", "/logs/" + "x" * 300, "*/*", 404),
    ],
)
async def test_what_is_not_there_or_not_meant_is_refused(
    api: API, method: str, path: str, accept: str, status: int
) -> None:
    assert (await api.request(method, path, accept=accept)).status == status


async def test_they_are_not_there_unless_asked_for() -> None:
    async with whole_server() as api:
        assert (await api.request("GET", "/logs/", accept="*/*")).status == 404
