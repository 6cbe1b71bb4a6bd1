"""What is in `deploy/`: its flags are the server's, its objects are valid, its pods may run where little is allowed."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from whole_server import whole_server

from pilothouse.cli.main import main
from pilothouse.controlplane.options.options import Options
from pilothouse.testing import API

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCUMENTS: list[dict[str, Any]] = [
    document
    for file in ("namespace.yaml", "etcd.yaml", "pilothouse.yaml")
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text())
]
WORKLOADS = [document for document in DOCUMENTS if document["kind"] in ("Deployment", "StatefulSet")]
IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


def entry_point() -> list[str]:
    [words] = re.findall(r"^ENTRYPOINT (\[.*\])$", (DEPLOY / "container/Dockerfile").read_text(), re.M)
    command: list[str] = yaml.safe_load(words)
    return command


def unit() -> dict[str, str]:
    lines = (DEPLOY / "systemd/pilothouse.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_the_image_serves_with_flags_of_the_server() -> None:
    assert entry_point()[:2] == ["pilothouse", "serve"]
    assert Options.parse(entry_point()[2:]).pilothouse.data_dir == "/data"


def test_the_unit_serves_with_flags_of_the_server_from_its_own_folder() -> None:
    program, command, *flags = shlex.split(unit()["ExecStart"])
    assert (Path(program).name, command, flags.pop()) == ("pilothouse", "serve", "$PILOTHOUSE_FLAGS")
    assert Options.parse(flags).pilothouse.data_dir == f"/var/lib/{unit()['StateDirectory']}"


def test_the_replicas_join_over_etcd_and_are_known_by_the_names_of_their_service() -> None:
    [deployment] = [workload for workload in WORKLOADS if workload["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    flags = [flag.replace("$(POD_IP)", "192.0.2.1") for flag in container["args"]]
    options = Options.parse([*entry_point()[2:], *flags])
    [etcd] = [workload for workload in WORKLOADS if workload["kind"] == "StatefulSet"]
    assert len(options.etcd.servers) == etcd["spec"]["replicas"]
    assert "pilothouse.pilothouse.svc" in options.replicas.cert_extra_sans
    assert "PILOTHOUSE_JOIN" in [variable["name"] for variable in container["env"]]


def test_every_object_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *(str(DEPLOY / "kubernetes" / name) for name in ("etcd.yaml", "pilothouse.yaml"))]) == 0, (
        capsys.readouterr().out
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api() -> AsyncIterator[API]:
    async with whole_server() as api:
        assert (await api.request("POST", "/api/v1/namespaces", DOCUMENTS[0])).status == 201
        yield api


@IN_ONE_LOOP
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload["metadata"]["name"]))
async def test_pods_are_admitted_where_only_the_restricted_standard_is(api: API, workload: dict[str, Any]) -> None:
    template = workload["spec"]["template"]
    pod = {"metadata": {**template["metadata"], "name": "p"}, "spec": dict(template["spec"])}
    claims = [
        {"name": claim["metadata"]["name"], "emptyDir": {}}
        for claim in workload["spec"].get("volumeClaimTemplates", [])
    ]
    pod["spec"]["volumes"] = [*pod["spec"].get("volumes", []), *claims]
    answer = await api.request("POST", "/api/v1/namespaces/pilothouse/pods?dryRun=All", pod)
    assert answer.status == 201, answer.json
