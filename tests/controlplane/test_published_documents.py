"""What a whole server publishes of itself: OpenAPI documents as kube-apiserver v1.36.4 has them, checks, metrics."""

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
UPSTREAMS_METRICS = """
# HELP hidden_metrics_total [BETA] The count of hidden metrics.
# TYPE apiserver_audit_event_total counter
# HELP authentication_attempts [ALPHA] Counter of authenticated attempts.
# TYPE authentication_attempts counter
# TYPE apiserver_flowcontrol_request_execution_seconds histogram
# HELP apiserver_flowcontrol_target_seats [ALPHA] Seat allocation targets
# TYPE apiserver_request_filter_duration_seconds histogram
# HELP apiserver_storage_events_received_total [BETA] Number of etcd events received split by kind.
apiserver_resource_objects{group="",resource="namespaces"} 4
apiserver_storage_objects{resource="namespaces"} 4
apiserver_storage_objects{resource="jobs.batch"} 0
"""


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


async def test_the_metrics_have_upstreams_names_types_and_words(api: API) -> None:
    shown = (await api.request("GET", "/metrics")).body.decode()
    for family in UPSTREAMS_METRICS.strip().splitlines():
        assert f"\n{family}\n" in shown


async def test_checks_are_named_in_upstreams_order(api: API) -> None:
    lines = (await api.request("GET", "/readyz?verbose")).body.decode().splitlines()
    names = [line.removeprefix("[+]").removesuffix(" ok") for line in lines]
    assert names[:6] == [
        "ping",
        "log",
        "etcd",
        "etcd-readiness",
        "informer-sync",
        "poststarthook/start-apiserver-admission-initializer",
    ]
    assert names[-2:] == ["shutdown", "readyz check passed"]
