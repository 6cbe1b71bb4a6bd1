"""A server on a platform for which google-re2 has no wheel: patterns are matched all the same, in linear time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE
from restarts import server_client
from serving_process import ServeProcess

from pilothouse.client.wait import poll
from pilothouse.errors import Invalid, NotFound
from pilothouse.machinery.objects import Json

WITHOUT_RE2 = "import sys; sys.modules['re2'] = None"
BACKTRACKING = "(a|aa)+$"
SHELL: Json = {"apiVersion": "example.com/v1", "kind": "Shell"}
DEFINITION: Json = {
    "metadata": {"name": "shells.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "shells", "kind": "Shell"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "code": {"type": "string", "pattern": BACKTRACKING},
                            "name": {
                                "type": "string",
                                "x-kubernetes-validations": [{"rule": "self.matches('^x+y+$')"}],
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServeProcess]:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_RE2)
    monkeypatch.setattr(ServeProcess, "environment", {**os.environ, "PYTHONPATH": str(tmp_path)})
    process = ServeProcess(tmp_path / "data")
    yield process
    process.close()


async def test_patterns_and_rules_are_checked_without_re2(server: ServeProcess) -> None:
    async with server_client(server) as client:
        await client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions").create(DEFINITION)
        shells = client.resource("example.com/v1", "shells")

        async def is_served() -> bool:
            try:
                await shells.list()
            except NotFound:
                return False
            return True

        await poll(is_served, 0.05, timeout=PATIENCE)
        made = await shells.create(SHELL | {"metadata": {"name": "good"}, "code": "aaa", "name": "xxyy"})
        assert made["code"] == "aaa"
        for field, value in (("code", "a" * 5000 + "b"), ("name", "x" * 5000)):
            with pytest.raises(Invalid, match=field):
                await shells.create(SHELL | {"metadata": {"name": "bad"}, field: value})
        long = {"metadata": {"name": "long", "labels": {"a": "b" * 5000}}}
        with pytest.raises(Invalid, match="must be no more than 63"):
            await client.resource("v1", "configmaps", namespace="default").create(long)
    server.signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait) == 0
    assert "Traceback" not in server.errors()
