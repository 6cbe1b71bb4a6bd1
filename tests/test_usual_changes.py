"""The most usual changes, applied to a copy of the package exactly as ARCHITECTURE.md describes them.

A change is a row of `CHANGES`: it may touch only the files that its line of "Where to change what" names, and its
program must see the effect in a process that imports the copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
_PATH = re.compile(r"`([\w<>./-]+/[\w<>.-]*)`")
_SERVER = """
import asyncio
from pilothouse.client import GroupVersionResource, Json
from pilothouse.testing import server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"

def config_map(**metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

"""


@dataclass(frozen=True)
class Change:
    row: str
    """How the line of ARCHITECTURE.md begins."""
    program: str
    """Raises if the change has no effect."""
    files: Mapping[str, str] = field(default_factory=dict)
    """New files by path below the package."""
    insertions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By path below the package: text to insert, by the line that it follows."""


CHANGES = {
    "admission plugin": Change(
        row="| Add an admission plugin",
        files={
            "kube/admission/deny_purple.py": """
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.interface import refused
from pilothouse.machinery.objects import labels_of


class DenyPurple:
    name = "DenyPurple"

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.CREATE

    async def validate(self, attributes: Attributes) -> None:
        if labels_of(attributes.obj or {"metadata": {}}).get("colour") == "purple":
            raise refused(attributes, "purple is taken")
""",
        },
        insertions={
            "kube/admission/plugins.py": {
                "from pilothouse.kube.admission.deny_service_external_ips import DenyServiceExternalIPs": (
                    "from pilothouse.kube.admission.deny_purple import DenyPurple"
                ),
                '    Row("DenyServiceExternalIPs", OFF, lambda parts: DenyServiceExternalIPs()),': (
                    '    Row("DenyPurple", OFF, lambda parts: DenyPurple()),'
                ),
            },
        },
        program=_SERVER
        + """
async def main():
    async with server(enable_admission_plugins="DenyPurple", controllers="-*") as api:
        await api.client().request("POST", CONFIG_MAPS, body=config_map(name="a"))
        try:
            await api.client().request("POST", CONFIG_MAPS, body=config_map(name="b", labels={"colour": "purple"}))
        except Exception as error:
            assert "purple is taken" in str(error), error
        else:
            raise AssertionError("the plugin did not reject the object")

asyncio.run(main())
""",
    ),
    "printer column": Change(
        row="| … a printer column",
        insertions={
            "kube/scheduling/priorityclasses.py": {
                "        NAME,": '        Column("Colour", lambda obj: "purple", description="Colour of the class."),',
            },
        },
        program=_SERVER
        + """
async def main():
    async with server(controllers="-*") as api:
        table = await api.client().get_json(CLASSES, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert [column["name"] for column in table["columnDefinitions"]][:2] == ["Name", "Colour"], table
        assert {row["cells"][1] for row in table["rows"]} == {"purple"}, table

asyncio.run(main())
""",
    ),
    "flag": Change(
        row="| Add a flag",
        insertions={
            "controlplane/options/pilothouse.py": {
                '    title: ClassVar[str] = "pilothouse"': (
                    '    greeting: str = flag("greeting", STRING, "", "Text to greet with.", group=TaskGroup.STARTUP)'
                ),
            },
        },
        program="""
from contextlib import redirect_stdout, suppress
from io import StringIO
from pilothouse.cli.main import main
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options

assert complete(Options.parse(["--greeting=ahoy"])).validate().pilothouse.greeting == "ahoy"
with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
    main(["serve", "--help"])
assert "--greeting string" in printed.getvalue(), printed.getvalue()
assert "Text to greet with." in printed.getvalue()
""",
    ),
    "controller": Change(
        row="| Add a controller",
        files={
            "controllers/greeter/__init__.py": "",
            "controllers/greeter/controller.py": """
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CONFIG_MAPS


async def run(context: ControllerContext) -> None:
    greeting = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}}
    await context.client.for_resource(CONFIG_MAPS, namespace="default").create(greeting)
""",
        },
        insertions={
            "controllers/table.py": {
                "CONTROLLERS = (": (
                    '    ControllerDescriptor("greeter-controller", "greeter.controller",'
                    ' account="greeter", has_every_right=True),'
                ),
            },
        },
        program=_SERVER
        + """
async def main():
    async with server(controllers="greeter-controller") as api:
        config_maps = api.client().for_resource(GroupVersionResource("", "v1", "configmaps"), namespace="default")
        async for event in await config_maps.watch():
            if event.object["metadata"]["name"] == "greeting":
                return

asyncio.run(asyncio.wait_for(main(), 300))
""",
    ),
    "CEL function": Change(
        row="| Add a CEL function",
        insertions={
            "machinery/cel/library/strings.py": {
                "STRINGS = (": '    row("string_shout", "string -> shout() string", lambda text: text.upper() + "!"),',
            },
        },
        program="""
from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.program import Program

compiled = Environment({"name": "string"}).compile("name.shout()")
assert compiled.type == "string", compiled.type
assert Program(compiled.program).run({"name": "ahoy"}).value == "AHOY!"
""",
    ),
}


def documented_paths(row: str) -> list[str]:
    """Return the paths that the line of ARCHITECTURE.md names, as patterns below the package."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(row))
    return [re.sub(r"<\w+>", "*", path) for path in _PATH.findall(line.partition("|")[2])]


def is_covered(path: str, patterns: list[str]) -> bool:
    """Whether a pattern names the file or a folder above it."""
    places = [PurePosixPath(path), *PurePosixPath(path).parents]
    return any(place.match(pattern.rstrip("/")) for place in places for pattern in patterns)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_architecture_names_every_file_of_the_change(change: Change) -> None:
    patterns = documented_paths(change.row)
    assert [path for path in (*change.files, *change.insertions) if not is_covered(path, patterns)] == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_change_takes_effect(change: Change, tmp_path: Path) -> None:
    package = tmp_path / "pilothouse"
    shutil.copytree(ROOT / "pilothouse", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in change.files.items():
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).write_text(text, encoding="utf-8")
    for path, insertions in change.insertions.items():
        text = (package / path).read_text(encoding="utf-8")
        for line, inserted in insertions.items():
            assert text.count(f"{line}\n") == 1, f"{path} has no single line {line!r}"
            text = text.replace(f"{line}\n", f"{line}\n{inserted}\n")
        (package / path).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    check = "import pilothouse, pathlib\nassert pathlib.Path(pilothouse.__file__).is_relative_to(pathlib.Path.cwd())\n"
    ran = subprocess.run(
        [sys.executable, "-c", check + change.program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
