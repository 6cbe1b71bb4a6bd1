"""Built-in kinds as operators import them: markers at run time, TypedDicts for type checkers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import orjson
import pytest

from pilothouse.client import DiscoveryClient
from pilothouse.operator import types
from pilothouse.testing import server
from tools.builtin_types.sources import installed_types
from tools.builtin_types.typed_dicts import write_typed_dicts

PROGRAM = """
from typing import assert_type

from pilothouse.operator.types.apiextensions_v1 import JSONSchemaProps
from pilothouse.operator.types.apps_v1 import Deployment, DeploymentSpec
from pilothouse.operator.types.core_v1 import Container, Service
from pilothouse.operator.types.networking_v1 import NetworkPolicy
from pilothouse.operator.types.resource_v1 import DeviceAttribute

def read(deployment: Deployment, policy: NetworkPolicy, schema: JSONSchemaProps, device: DeviceAttribute) -> None:
    assert_type(deployment["metadata"]["labels"], dict[str, str])
    assert_type(deployment["spec"], DeploymentSpec)
    assert_type(deployment["spec"]["template"]["spec"]["containers"], list[Container])
    assert_type(deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"], int | str)
    assert_type(policy["spec"]["ingress"][0]["from"][0]["ipBlock"]["except"], list[str])
    assert_type(schema["properties"]["size"]["x-kubernetes-int-or-string"], bool)
    assert_type(device["int"], int)

def write() -> Service:
    deployment = Deployment(metadata={"name": "web"}, spec={"replicas": 3})
    deployment["spec"]["paused"] = True
    return {"kind": "Service", "spec": {"ports": [{"port": 80, "targetPort": "http"}]}}
"""
WRONG = {
    'Deployment(spec={"replica": 3})': "typeddict-unknown-key",
    'Deployment(spec={"replicas": "3"})': "typeddict-item",
    'Deployment(kind="DaemonSet")': "typeddict-item",
    'Deployment()["spec"]["template"]["spec"]["contaners"]': "typeddict-item",
    'Container(resources={"limits": {"cpu": 1}})': "dict-item",
    "from pilothouse.operator.types.apps_v1 import Deploymnt": "attr-defined",
}

OPERATOR = """
from typing import Annotated, assert_type

from pilothouse.builder import Column, Default, Minimum, ObjectMeta, Pattern
from pilothouse.operator import Condition, Json, Manager, Reconciler, Result, Status, kind


def cronjob_for(backup: "Backup") -> Json:
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": backup.metadata.name}}


@kind(group="demo.example.com", version="v1", status=True, short_names=["bk"], columns=[Column("Keep", ".spec.keep")])
class Backup:
    schedule: Annotated[str, Pattern(r"^[0-9* ]+$"), Default("0 3 * * *")]
    keep: Annotated[int, Minimum(1)] = 7


class BoatStatus(Status):
    port: str = ""


@kind(group="demo.example.com", version="v1", status=BoatStatus)
class Boat:
    length: int


@kind(group="demo.example.com", version="v1")
class Plain:
    length: int = 1


class BackupReconciler(Reconciler[Backup]):
    owns = ["batch/v1 CronJob", "v1 ConfigMap"]
    finalizer = "demo.example.com/backup"

    async def reconcile(self, backup: Backup) -> Result | None:
        await self.apply(backup, cronjob_for(backup))
        backup.status.conditions.set(Condition("Ready", True, "CronJobApplied"))
        assert_type(backup.metadata, ObjectMeta)
        assert_type(backup.keep, int)
        boat = self.get(Boat, "ann")
        assert boat is not None
        assert_type(boat.status.port, str)
        return None

    async def finalize(self, backup: Backup) -> None: ...


Backup(schedule="* * * * *", metadata={"name": "a"})
Boat(length=3, metadata=ObjectMeta(name="a"))
Manager(reconcilers=[BackupReconciler]).run()
"""
WRONG_USES = {
    "Backup(schedule=1)": "arg-type",
    "Boat()": "call-arg",
    "Boat(length=1).status.prt": "attr-defined",
    "Boat(length=1).metadata.nme": "attr-defined",
    "Plain().status": "attr-defined",
    'Backup(schedule="", metadata=3)': "arg-type",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the generated modules alone."""
    root = tmp_path_factory.mktemp("package")
    folder = root / "pilothouse/operator/types"
    folder.mkdir(parents=True)
    shutil.copy(str(types.__file__), folder)
    write_typed_dicts(installed_types().definitions, folder)
    return root


@pytest.fixture
def group_version(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import the generated module of a group version."""
    monkeypatch.setattr(types, "__path__", [str(package / "pilothouse/operator/types")])
    before = {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith(f"{types.__name__}.")}
    yield lambda name: import_module(f"{types.__name__}.{name}")
    for name in [name for name in sys.modules if name.startswith(f"{types.__name__}.")]:
        del sys.modules[name]
    sys.modules.update(before)


def checked(package: Path, program: str) -> subprocess.CompletedProcess[str]:
    source = package / "program.py"
    source.write_text(program)
    flags = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context", f"--cache-dir={package}/cache"]
    command = [sys.executable, "-m", "mypy", *flags, "--explicit-package-bases", source.name]
    return subprocess.run(command, cwd=package, capture_output=True, text=True)


def test_a_kind_knows_its_names(group_version: Callable[[str], ModuleType]) -> None:
    deployment, policy = group_version("apps_v1").Deployment, group_version("networking_v1").NetworkPolicy
    assert (deployment.API_VERSION, deployment.KIND, deployment.PLURAL) == ("apps/v1", "Deployment", "deployments")
    assert (policy.API_VERSION, policy.PLURAL) == ("networking.k8s.io/v1", "networkpolicies")
    assert group_version("core_v1").Endpoints.API_VERSION == "v1"
    assert deployment is group_version("apps_v1").Deployment


def test_a_call_returns_a_plain_dict(group_version: Callable[[str], ModuleType]) -> None:
    core = group_version("core_v1")
    pod = core.Pod(metadata={"name": "web"}, spec=core.PodSpec(containers=[core.Container(name="web")]))
    assert type(pod) is dict
    assert orjson.loads(orjson.dumps(pod)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web"}]},
    }
    assert core.Pod({"metadata": {}}) == {"apiVersion": "v1", "kind": "Pod", "metadata": {}}


def test_an_unknown_name_is_no_attribute(group_version: Callable[[str], ModuleType]) -> None:
    apps = group_version("apps_v1")
    with pytest.raises(AttributeError, match=r"module 'pilothouse.operator.types.apps_v1' has no attribute 'Deploy'"):
        _ = apps.Deploy
    assert {"Deployment", "DeploymentSpec"} <= {*apps.__all__} <= {*dir(apps)}


async def test_plurals_are_those_that_a_server_shows(package: Path, group_version: Callable[[str], ModuleType]) -> None:
    modules = [group_version(path.stem) for path in (package / "pilothouse/operator/types").glob("*_v*.py")]
    kinds = [getattr(module, name) for module in modules for name in module.__all__]
    plurals = {(kind.API_VERSION, kind.KIND): kind.PLURAL for kind in kinds if kind is not dict}
    async with server(runtime_config="api/all=true") as api:
        resources = (await DiscoveryClient(api.client(in_process=True)).server_resources()).resources
    served = {(r.kind.api_version, r.kind.kind): r.resource.resource for r in resources if not r.is_subresource}
    assert {kind: plurals[kind] for kind in served if kind in plurals} == {
        kind: plural for kind, plural in served.items() if kind in plurals
    }
    assert {kind for kind in served if kind not in plurals} == set()


@pytest.mark.slow
def test_types_of_fields_are_known(package: Path) -> None:
    result = checked(package, PROGRAM)
    assert (result.stdout, result.returncode) == ("", 0)


@pytest.mark.slow
def test_misspelt_fields_and_wrong_types_are_refused(package: Path) -> None:
    head = "from pilothouse.operator.types.apps_v1 import Deployment\n"
    head += "from pilothouse.operator.types.core_v1 import Container\n"
    result = checked(package, head + "\n".join(WRONG) + "\n")
    assert re.findall(r": error: .* \[([a-z-]+)\]$", result.stdout, re.MULTILINE) == [*WRONG.values()], result.stdout


@pytest.mark.slow
def test_the_plugin_knows_the_attributes_of_kinds_without_a_base_class(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OPERATOR)
    (tmp_path / "wrong.py").write_text("\n".join(["from program import Backup, Boat, Plain", *WRONG_USES]) + "\n")
    configuration = "[mypy]\nstrict = True\nplugins = pilothouse.operator.mypy\nfollow_imports = silent\n"
    (tmp_path / "mypy.ini").write_text(configuration)
    root = str(Path(types.__file__).parents[3])
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir=cache", "program.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": root, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^(\w+)\.py:\d+: error: .* \[([a-z-]+)\]$", result.stdout, re.MULTILINE)
    assert found == [("wrong", code) for code in WRONG_USES.values()], result.stdout + result.stderr
