"""`pilothouse validate` reports every error of an object, and goes on with the next object."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.cli.offline.documents import CheckReport
from pilothouse.cli.offline.validating import ValidationRequest, validate

_FILES = {
    "deployment.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: Web_1}
spec:
  replicaz: 3
  replicas: many
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: ""
        ports:
        - containerPort: http
        - containerPort: 99999
        resources:
          limits:
            cpu: lots
            example.com/gpu: two
      restartPolicy: Sometimes
---
apiVersion: v1
kind: ConfigMap
metadata: {name: valid}
""",
    "pod.yaml": """# a comment
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  serviceAccountName: builder
  priorityClassName: urgent
  containers:
  - name: x
    image: ""
    imgae: y
    name: z
""",
    "thing.yaml": """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scop: Namespaced
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 3}, colour: {type: string}}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: t}
spec:
  size: 4
  colour: 1
  weight: 1
""",
    "service.json": """{
  "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
  "spec": {
    "selektor": {},
    "type": 5,
    "ports": [{"port": 80}, {"port": "http"}, {"port": -1}]
  }
}
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("manifests")
    for name, text in _FILES.items():
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> CheckReport:
    return asyncio.run(validate(ValidationRequest([str(folder)])))


@pytest.mark.parametrize(
    ("file", "errors"),
    [
        (
            "deployment.yaml",
            [
                (3, "metadata.name: Invalid value"),
                (5, 'unknown field "spec.replicaz"'),
                (6, "spec.replicas: json: cannot unmarshal string"),
                (13, "spec.template.spec.containers[0].image: Required value"),
                (15, "spec.template.spec.containers[0].ports[0].containerPort: json: cannot unmarshal string"),
                (16, "spec.template.spec.containers[0].ports[1].containerPort: Invalid value: 99999"),
                (19, "spec.template.spec.containers[0].resources.limits.cpu: quantities must match"),
                (18, "spec.template.spec.containers[0].resources.limits.example.com/gpu: quantities must match"),
                (21, "spec.template.spec.restartPolicy: Unsupported value"),
            ],
        ),
        (
            "pod.yaml",
            [
                (7, 'serviceaccount "builder" not found'),
                (8, "no PriorityClass with name urgent was found"),
                (11, "spec.containers[0].image: Required value"),
                (12, 'unknown field "spec.containers[0].imgae"'),
                (13, 'key "name" already set in map'),
            ],
        ),
        (
            "thing.yaml",
            [
                (6, 'unknown field "spec.scop"'),
                (23, "spec.size: Invalid value: 4"),
                (24, "spec.colour: Invalid value"),
                (25, 'unknown field "spec.weight"'),
            ],
        ),
        (
            "service.json",
            [
                (4, 'unknown field "spec.selektor"'),
                (5, "spec.type: json: cannot unmarshal number"),
                (6, "spec.ports[1].port: json: cannot unmarshal string"),
                (6, "spec.ports[2].port: Invalid value: -1"),
            ],
        ),
    ],
)
def test_every_error_is_reported_with_its_line(
    report: CheckReport, folder: Path, file: str, errors: list[tuple[int, str]]
) -> None:
    found = [(finding.line, finding.message) for finding in report.findings if finding.file == str(folder / file)]
    missing = [(line, text) for line, text in errors if not any(at == line and text in said for at, said in found)]
    assert missing == []
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_consequences_of_reported_errors_are_not_reported(report: CheckReport, folder: Path) -> None:
    fields = [finding.field for finding in report.findings if finding.file == str(folder / "service.json")]
    assert fields.count("spec.ports[1].port") == fields.count("spec.type") == 1


def test_a_valid_object_beside_an_invalid_one_is_valid(report: CheckReport) -> None:
    valid = {checked.subject: checked.passed for checked in report.checked}
    assert valid == {
        "Deployment Web_1": False,
        "ConfigMap valid": True,
        "Pod a": False,
        "CustomResourceDefinition things.example.com": False,
        "Thing t": False,
        "Service s": False,
    }


def test_deeply_nested_text_is_an_error_on_its_line_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "deep.yaml").write_text("a:\n  " + "{b: " * 100_000)
    command = [sys.executable, "-m", "pilothouse.cli.main", "validate", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines() == [
        f"{tmp_path}/deep.json:1: error: yaml: exceeded max depth",
        f"{tmp_path}/deep.yaml:2: error: yaml: exceeded max depth",
        "2 objects checked: 0 valid, 2 invalid",
    ]
