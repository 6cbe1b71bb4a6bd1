"""`pilothouse snapshot`: what is in one cluster comes to be in another, by way of a file or a folder."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from custom_resources import WIDGETS, definition, eventually, install, widget
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.cli.main import main
from pilothouse.client import Json
from pilothouse.testing import API, StoredSnapshot

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEAM = "/api/v1/namespaces/team"


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="running")
async def _running() -> AsyncIterator[tuple[API, StoredSnapshot]]:
    async with whole_server() as api:
        yield api, await api.snapshot()


@pytest_asyncio.fixture(loop_scope="module", name="full")
async def _full(running: tuple[API, StoredSnapshot]) -> AsyncIterator[API]:
    """A cluster in which there is something. Afterwards it is empty."""
    api, empty = running
    await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    owner = await create_config_map(api, "owner", namespace="team", data={"a": "1"})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await create_config_map(api, "another", namespace="team", metadata={"ownerReferences": [reference]})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    created = (await api.request("POST", f"{TEAM}/pods", pod)).json
    await api.request("PUT", f"{TEAM}/pods/p/status", {**created, "status": {"phase": "Running"}})
    await install(api, definition())
    await eventually(api, 201, "POST", WIDGETS, widget(spec={"size": 7}))
    yield api
    await api.restore(empty)


async def snapshot(*words: object) -> int:
    return await asyncio.to_thread(main, ["snapshot", *map(str, words)])


async def test_a_file_brings_a_cluster_back(
    full: API, running: tuple[API, StoredSnapshot], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = tmp_path / "all.snapshot", ("--kubeconfig", full.kubeconfig)
    assert await snapshot("save", file, *config) == 0
    assert file.stat().st_mode & 0o077 == 0
    await full.restore(running[1])
    assert (await full.request("GET", f"{TEAM}/pods/p")).status == 404

    assert await snapshot("load", file, *config) == 0, capsys.readouterr().err
    owner = (await full.request("GET", f"{TEAM}/configmaps/owner")).json
    assert owner["data"] == {"a": "1"}
    owned = (await full.request("GET", f"{TEAM}/configmaps/another")).json
    assert [each["uid"] for each in owned["metadata"]["ownerReferences"]] == [owner["metadata"]["uid"]]
    assert (await full.request("GET", f"{TEAM}/pods/p")).json["status"]["phase"] == "Running"
    assert (await full.request("GET", f"{WIDGETS}/a")).json["spec"] == {"size": 7}


async def test_every_object_of_a_file_is_at_the_revision_that_it_names(full: API, tmp_path: Path) -> None:
    file = tmp_path / "all.snapshot"
    assert await snapshot("save", file, "--data-dir", full.home.data_dir) == 0
    head, *objects = _lines(file)
    assert (head["format"], head["version"], head["inexact"]) == ("pilothouse.dev/snapshot", 1, [])
    assert head["objects"] == len(objects)
    assert max(int(obj["metadata"]["resourceVersion"]) for obj in objects) <= int(head["revision"])
    names = [(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in objects]
    assert len(names) == len(set(names))
    assert ("Widget", "default", "a") in names


async def test_a_folder_has_what_people_write_and_is_applied_in_order(
    full: API, running: tuple[API, StoredSnapshot], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, config = tmp_path / "objects", ("--kubeconfig", full.kubeconfig)
    assert await snapshot("export", folder, "--plain", *config) == 0
    assert (folder / "example.com/Widget/default/a.yaml").read_text() == (
        "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\n  namespace: default\nspec:\n  size: 7\n"
    )
    await full.restore(running[1])
    assert await snapshot("import", folder, *config) == 0, capsys.readouterr().err
    assert (await full.request("GET", f"{TEAM}/configmaps/owner")).json["data"] == {"a": "1"}
    assert (await full.request("GET", f"{WIDGETS}/a")).json["spec"] == {"size": 7}


async def test_what_does_not_go_is_told_and_the_rest_goes_on(
    full: API, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n"
    (tmp_path / "a.yaml").write_text(f"apiVersion: v1\nkind: Unicorn\nmetadata: {{name: a}}\n---\n{good}")
    assert await snapshot("import", tmp_path, "--kubeconfig", full.kubeconfig) == 1
    assert "Error: Unicorn/a: no matches for kind 'Unicorn' in group ''" in capsys.readouterr().err
    assert (await full.request("GET", f"{CONFIG_MAPS}/good")).status == 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "not a snapshot", id="empty"),
        pytest.param(b"no gzip", "not a snapshot: Not a gzipped file (b'no')", id="not compressed"),
        pytest.param(gzip.compress(b"{}"), "not a snapshot", id="another document"),
        pytest.param(
            gzip.compress(b'{"format":"pilothouse.dev/snapshot","version":2}'),
            "version 2 is newer than this Pilothouse",
            id="newer version",
        ),
        pytest.param(
            gzip.compress(b'{"format":"pilothouse.dev/snapshot","version":1,"objects":3}'),
            "the file is incomplete: 0 of 3 objects",
            id="cut short",
        ),
    ],
)
async def test_a_file_that_is_none_is_refused(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "file").write_bytes(content)
    assert await snapshot("load", file) == 2
    assert f"Error: {file}: {message}" in capsys.readouterr().err


def _lines(file: Path) -> list[Json]:
    return [orjson.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
