"""Lists that nobody reads, on a server in its own process: what they cost it in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hostile_lists import CONFIG_MAPS, MEGABYTE, resident_bytes, store_large_objects, unread_lists
from serving_process import ServeProcess

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, verbs: [list]}
"""
LISTS, OBJECTS = 12, 20
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="module", params=["", "audited"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("unread")
    flags: list[str] = []
    if request.param:
        (folder / "policy.yaml").write_text(POLICY)
        flags = [f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
    running = ServeProcess(folder / "data", *flags)
    store_large_objects(running, OBJECTS)
    yield running
    running.close()


@pytest.mark.parametrize(
    ("accept", "target"),
    [
        ("application/json", CONFIG_MAPS),
        ("application/vnd.kubernetes.protobuf", CONFIG_MAPS),
        ("application/json;pretty=1", CONFIG_MAPS),
        ("application/yaml", CONFIG_MAPS),
        (TABLE, f"{CONFIG_MAPS}?includeObject=Object"),
    ],
)
def test_lists_that_nobody_reads_hold_little(server: ServeProcess, accept: str, target: str) -> None:
    with unread_lists(server, 1, accept=accept, target=target):
        pass  # what is kept with the objects is there from now on
    connection = server.connect()
    connection.request("GET", target, headers={"Accept": accept})
    whole = len(connection.getresponse().read())
    before = resident_bytes(server)
    with unread_lists(server, LISTS, accept=accept, target=target):
        held = resident_bytes(server) - before
    assert whole > OBJECTS * MEGABYTE * 0.9
    assert held < LISTS * 5 * MEGABYTE, f"{held / MEGABYTE:.0f} MB"


@pytest.mark.parametrize("server", ["audited"], indirect=True)
def test_a_list_that_is_too_large_for_the_audit_log_is_left_out_of_it(server: ServeProcess) -> None:
    log = server.data_dir.parent / "audit.log"
    assert server.get(CONFIG_MAPS)[0] == 200
    assert server.get(f"{CONFIG_MAPS}?limit=2")[0] == 200
    large, small = [json.loads(line) for line in log.read_text().splitlines()][-2:]
    assert large["annotations"]["audit.k8s.io/truncated"] == "true"
    assert "responseObject" not in large
    assert [item["metadata"]["name"] for item in small["responseObject"]["items"]] == ["kube-root-ca.crt", "large-0"]
