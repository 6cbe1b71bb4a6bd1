"""`pilothouse test`: cases against policies and rules, and what is said of those that go otherwise."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pilothouse.cli.main import main
from pilothouse.cli.offline.documents import CheckReport
from pilothouse.cli.offline.trial import run_case_files

_POLICIES = """apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [deployments]}
  validations:
  - expression: object == null || object.spec.replicas <= int(params.data.most)
    messageExpression: "'at most ' + params.data.most + ' replicas'"
  - expression: object != null || request.userInfo.username == 'ann'
    message: only ann deletes
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{labels: Object.metadata.labels{team: request.userInfo.username}}}
"""
_POLICY_CASES = """policies: [policies.yaml]
cases:
- name: three are too many
  params: &most {apiVersion: v1, kind: ConfigMap, metadata: {name: most}, data: {most: "2"}}
  object: &three
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: shop}
    spec: &spec
      replicas: 3
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}
  expect: {allowed: false, message: at most 2 replicas}
- name: two are not, and get a label
  user: ann
  params: *most
  object: &two {<<: *three, spec: {<<: *spec, replicas: 2}}
  expect: {allowed: true, object: {metadata: {labels: {team: ann}}}}
- name: two do not become three
  params: *most
  oldObject: *two
  object: *three
  expect: {allowed: false}
- name: bob does not delete
  user: {name: bob, groups: [staff]}
  params: *most
  oldObject: *three
  expect: {allowed: false, message: '/only \\w+ deletes/'}
- name: ann deletes
  user: ann
  params: *most
  oldObject: *three
  expect: {allowed: true}
- name: expects a refusal
  params: *most
  object: *two
  expect: {allowed: false}
- name: expects another object
  params: *most
  object: *two
  expect: {allowed: true, object: {spec: {replicas: 3}}}
- name: is refused for another reason
  params: *most
  object: {<<: *two, spec: {}}
  expect: {allowed: false}
"""
_RULE_CASES = """crds:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: disks.example.com}
  spec:
    group: example.com
    scope: Cluster
    names: {plural: disks, kind: Disk}
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {size: {type: integer, default: 1}}
              x-kubernetes-validations:
              - {rule: self.size >= oldSelf.size, message: a disk does not shrink}
cases:
- name: a disk has a size
  object: {apiVersion: example.com/v1, kind: Disk, metadata: {name: a}, spec: {}}
  expect: {allowed: true, object: {spec: {size: 1}}}
- name: a disk grows
  oldObject: &small {apiVersion: example.com/v1, kind: Disk, metadata: {name: a}, spec: {size: 1}}
  object: &large {apiVersion: example.com/v1, kind: Disk, metadata: {name: a}, spec: {size: 2}}
  expect: {allowed: true}
- name: a disk does not shrink
  oldObject: *large
  object: *small
  expect: {allowed: false, message: does not shrink}
- name: a typing error shows nothing
  object: {apiVersion: example.com/v1, kind: Disk, metadata: {name: a}, spec: {sise: 2}}
  expect: {allowed: false}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cases")
    for name, text in {"policies": _POLICIES, "policy-cases": _POLICY_CASES, "rule-cases": _RULE_CASES}.items():
        (root / f"{name}.yaml").write_text(text)
    return root


@pytest.fixture(scope="module")
def of_policies(folder: Path) -> CheckReport:
    return asyncio.run(run_case_files([str(folder / "policy-cases.yaml")], "policy"))


def test_cases_that_go_as_expected_are_well(of_policies: CheckReport) -> None:
    assert [checked.subject for checked in of_policies.checked if checked.passed] == [
        "three are too many",
        "two are not, and get a label",
        "two do not become three",
        "bob does not delete",
        "ann deletes",
    ]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("expects a refusal", 34, "the answer is not as expected\n- denied\n+ allowed"),
        ("expects another object", 38, "object.spec.replicas is not as expected\n- 3\n+ 2"),
        ("is refused for another reason", 42, "\n- denied by a policy\n+ denied for another reason: Deployment.apps"),
    ],
)
def test_what_goes_otherwise_is_told_as_a_difference(
    of_policies: CheckReport, name: str, line: int, message: str
) -> None:
    (finding,) = [finding for finding in of_policies.findings if finding.subject == name]
    assert finding.line == line
    assert message in finding.message


def test_rules_of_definitions_see_the_old_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "cel", str(folder / "rule-cases.yaml")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("rule-cases.yaml:34: error: a typing error shows nothing: the answer is not as expected")
    assert said[-1] == "4 cases run: 3 passed, 1 failed"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("cases: []\n", 1, "cases must be a list with at least one case"),
        ("cases:\n- objekt: {}\n", 2, "cases[0].objekt is not a known field"),
        ("cases:\n- name: a\n  expect: {allowed: true}\n", 2, "a case of CREATE needs an object"),
        ("cases:\n- name: a\n  object: {kind: A}\n", 3, "expected an object with apiVersion and kind"),
        ("cases:\n- object: {apiVersion: v1, kind: A}\n  expect: {}\n", 3, "expect.allowed must be true or false"),
        ("cases:\n- operation: EAT\n  object: {apiVersion: v1, kind: A}\n", 2, "operation must be one of"),
        ("cases: [\n", 2, "yaml: "),
        ("cases: " + "[" * 100_000, 1, "yaml: exceeded max depth"),
        ("cases: " + "{a: " * 50_000, 1, "yaml: exceeded max depth"),
        ("cases: &a [*a]\n", 1, "contains itself"),
        ("a: &a " + "x" * 100_000 + "\ncases: [" + "*a," * 2_000 + "]\n", 1, "excessive aliasing"),
        ("policies: [/dev/zero]\ncases: []\n", 1, "/dev/zero is neither a file nor a folder"),
        ("policies: [pipe]\ncases: []\n", 1, "pipe is neither a file nor a folder"),
    ],
    ids=range(13),
)
def test_a_file_that_is_not_understood_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    (tmp_path / "cases.yaml").write_text(text)
    os.mkfifo(tmp_path / "pipe")
    (finding,) = asyncio.run(run_case_files([str(tmp_path / "cases.yaml")], "policy")).findings
    assert finding.line == line
    assert message in finding.message


def test_pipes_and_devices_in_a_folder_are_not_waited_for(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/all.yaml").write_text(_POLICIES)
    os.mkfifo(tmp_path / "policies/pipe.yaml")
    (tmp_path / "policies/zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "policies/again").symlink_to(tmp_path)
    (tmp_path / "cases.yaml").write_text(_POLICY_CASES.replace("[policies.yaml]", "[policies]"))
    assert len(asyncio.run(run_case_files([str(tmp_path / "cases.yaml")], "policy")).checked) == 8
