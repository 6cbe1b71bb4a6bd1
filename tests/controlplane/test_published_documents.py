"""/openapi/v3 of a whole server: what kube-apiserver v1.36.4 publishes, byte by byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from whole_server import whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

HASHES: dict[str, str] = json.loads(Path(__file__).with_name("upstream_v3_hashes.json").read_text())
"""SHA-512 of upstream's documents by their paths."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    async with whole_server(Path(tmp_path_factory.mktemp("documents"))) as server:
        yield server


async def test_every_document_has_upstreams_hash(api: API) -> None:
    index = (await api.request("GET", "/openapi/v3")).json["paths"]
    published = {path: entry["serverRelativeURL"].partition("?hash=")[2] for path, entry in index.items()}
    assert published == HASHES


async def test_version_2_tells_what_a_field_of_an_enum_may_be(api: API) -> None:
    definitions = (await api.request("GET", "/openapi/v2")).json["definitions"]
    policy = definitions["io.k8s.api.core.v1.AzureDiskVolumeSource"]["properties"]["cachingMode"]
    assert policy["enum"] == ["None", "ReadOnly", "ReadWrite"]
    assert policy["description"].endswith('\n\nPossible enum values:\n - `"None"`\n - `"ReadOnly"`\n - `"ReadWrite"`')
    modes = definitions["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
    assert "enum" not in modes
    assert modes["items"]["enum"] == ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
