"""A store that an older version has written. `store_of_0.1.tar.xz` is what the first commit with `pilothouse serve` has
left: two ConfigMaps, one of them deleted, a Secret and the namespaces."""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.cli.main import main
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECORDED = Path(__file__).parents[1] / "recorded" / "store_of_0.1.tar.xz"


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    data_dir = tmp_path_factory.mktemp("old") / "data"
    data_dir.mkdir(mode=0o700)
    with tarfile.open(RECORDED) as recorded:
        recorded.extractall(data_dir, filter="data")
    assert await asyncio.to_thread(main, ["check", "--data-dir", str(data_dir)]) == 0
    async with whole_server(data_dir) as api:
        yield api


async def test_every_object_is_there_at_its_revision(api: API) -> None:
    kept = (await api.request("GET", f"{CONFIG_MAPS}/from-the-first-day")).json
    assert (kept["data"], kept["metadata"]["resourceVersion"]) == ({"a": "1"}, "6")
    secret = (await api.request("GET", "/api/v1/namespaces/early/secrets/s")).json
    assert secret["data"] == {"x": "eQ=="}
    assert (await api.request("GET", f"{CONFIG_MAPS}/gone")).status == 404


async def test_the_history_goes_on_where_it_ended(api: API) -> None:
    before = (await api.request("GET", f"{CONFIG_MAPS}?resourceVersion=9&resourceVersionMatch=Exact")).json
    assert [item["metadata"]["name"] for item in before["items"]] == ["from-the-first-day", "gone"]
    created = await create_config_map(api, "today")
    assert int(created["metadata"]["resourceVersion"]) > 10


async def test_it_is_well_when_both_have_written_to_it(api: API) -> None:
    assert await asyncio.to_thread(main, ["check", "--data-dir", str(api.home.data_dir)]) == 0
