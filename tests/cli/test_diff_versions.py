"""`pilothouse diff-versions`: what two Kubernetes versions do with the same objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.cli.main import main

OBJECTS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
{apiVersion: example.com/v1, kind: Backup, metadata: {name: nightly, namespace: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  hostnameOverride: db.example.com
  containers: [{name: web, image: nginx}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, ports: [{port: 80}]}
---
{apiVersion: networking.k8s.io/v9, kind: Nothing, metadata: {name: x}}
"""


def test_only_objects_that_differ_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(OBJECTS, encoding="utf-8")
    assert main(["diff-versions", "1.34", "1.36", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"Pod shop/web ({file}:16)",
        '  + spec.hostnameOverride: "db.example.com"',
    ]


def test_without_objects_kinds_and_gates_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", "1.35", "1.36"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "kind admissionregistration.k8s.io/v1 MutatingAdmissionPolicy: served since 1.36" in lines
    assert "feature gate MutatingAdmissionPolicy: beta, disabled -> stable, enabled" in lines
    assert "feature gate ConstrainedImpersonation: alpha, disabled -> beta, enabled" in lines
    assert "feature gate HonorPVReclaimPolicy: stable, enabled -> none" in lines


def test_a_version_has_no_differences_from_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", encoding="utf-8")
    assert main(["diff-versions", "1.36", "1.36", str(file)]) == 0
    assert capsys.readouterr().out == "No differences between Kubernetes 1.36 and 1.36.\n"


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", "1.36", "1.36", "nowhere.yaml"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_an_unknown_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diff-versions", "1.36", "2.0"])
    assert 'invalid value "2.0" for NEW: expected one of 1.34, 1.35, 1.36, 1.37' in capsys.readouterr().err
