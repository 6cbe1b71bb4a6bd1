"""The example of an operator, and a program without options, as processes against `pilothouse serve`."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from operator_parts import until
from patience import PATIENCE

from pilothouse.client import Client, connect, load_kubeconfig
from pilothouse.operator import definitions, kind
from pilothouse.testing import server

EXAMPLE = Path(__file__).parents[2] / "examples/foo_operator.py"
FOOS = "samplecontroller.example.com/v1alpha1"
PROGRAM = r"""
from typing import Annotated
from pilothouse.builder import Column, Default, Minimum, Pattern
from pilothouse.operator import Condition, Manager, Reconciler, Result, kind

def cronjob_for(backup):
    pod = {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "backup"}]}
    spec = {"schedule": backup.schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": backup.metadata.name}, "spec": spec}

@kind(group="demo.example.com", version="v1", status=True, short_names=["bk"], columns=[Column("Keep", ".spec.keep")])
class Backup:
    schedule: Annotated[str, Pattern(r"^[0-9* ]+$"), Default("0 3 * * *")]
    keep: Annotated[int, Minimum(1)] = 7

class BackupReconciler(Reconciler[Backup]):
    owns = ["batch/v1 CronJob", "v1 ConfigMap"]
    finalizer = "demo.example.com/backup"

    async def reconcile(self, backup: Backup) -> Result | None:
        await self.apply(backup, cronjob_for(backup))          # server-side apply, owner reference set
        backup.status.conditions.set(Condition("Ready", True, "CronJobApplied"))

    async def finalize(self, backup: Backup) -> None: ...

Manager(reconcilers=[BackupReconciler]).run()
"""


def test_the_example_is_short() -> None:
    """Lines of code, without the docstring and empty lines."""
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    statements = [
        node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and node not in tree.body[:1]
    ]
    text = ast.get_docstring(tree) or ""
    lines = {line for node in statements for line in (node.lineno,) if line > len(text.splitlines())}
    assert len(lines) <= 25


async def stopped(process: asyncio.subprocess.Process) -> int:
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE):
        return await process.wait()


async def started(kubeconfig: Path, *words: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return await asyncio.create_subprocess_exec(sys.executable, *words, env=environment)


async def life(client: Client, api_version: str, plural: str, kind_: str, spec: dict[str, object]) -> None:
    """Create an object, see its status, delete it, and see its finalizer removed."""
    objects = client.resource(api_version, plural, namespace="default")
    await objects.create({"apiVersion": api_version, "kind": kind_, "metadata": {"name": "one"}, "spec": spec})
    await until(client, api_version, plural, "one", lambda obj: (obj.get("status") or {}).get("conditions"))
    await objects.delete("one")
    await until(client, api_version, plural, "one", None)


@pytest.mark.slow
async def test_operators_run_as_programs_until_they_are_told_to_stop() -> None:
    @kind(group="demo.example.com", version="v1", status=True)
    class Backup:
        schedule: str = "0 3 * * *"
        keep: int = 7

    async with server(process=True) as api, connect(load_kubeconfig(api.kubeconfig)) as client:
        crds = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        programs = [await started(api.kubeconfig, str(EXAMPLE)), await started(api.kubeconfig, "-c", PROGRAM)]
        try:
            await until(client, "apiextensions.k8s.io/v1", "customresourcedefinitions", f"foos.{FOOS[:-9]}", is_served)
            await life(client, FOOS, "foos", "Foo", {"deploymentName": "one", "replicas": 2})
            lease = await client.resource("coordination.k8s.io/v1", "leases", namespace="default").get("foo-operator")
            assert lease["spec"]["holderIdentity"]
            await crds.create(definitions(Backup)[0])
            name = "backups.demo.example.com"
            await until(client, "apiextensions.k8s.io/v1", "customresourcedefinitions", name, is_served)
            await life(client, "demo.example.com/v1", "backups", "Backup", {"keep": 3})
            assert await asyncio.gather(*map(stopped, programs)) == [0, 0]
        finally:
            for program in programs:
                if program.returncode is None:
                    program.kill()
                    await program.wait()


def is_served(definition: dict[str, object]) -> bool:
    status = definition.get("status") or {}
    assert isinstance(status, dict)
    return any(one["type"] == "Established" and one["status"] == "True" for one in status.get("conditions") or ())
