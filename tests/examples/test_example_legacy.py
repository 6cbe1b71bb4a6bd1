"""examples/legacy.py: both versions of a kind show the same objects, each in its own form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_module import Running
from kubectl import Kubectl

OLD, NEW = "backends.v1beta1.legacy.example.com", "backends.v1.legacy.example.com"


@pytest.fixture(scope="module")
def kubectl(running: Running) -> Iterator[Kubectl]:
    with running("legacy") as (_, kubectl):
        yield kubectl


def _backend(version: str, name: str, **spec: Any) -> str:
    api_version = f"legacy.example.com/{version}"
    return json.dumps({"apiVersion": api_version, "kind": "Backend", "metadata": {"name": name}, "spec": spec})


def test_what_is_written_in_one_version_is_read_in_the_other(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_backend("v1beta1", "a", address="example.com:81"))
    assert kubectl.json("get", NEW, "a")["spec"] == {"host": "example.com", "port": 81, "replicas": 1}
    kubectl("create", "-f", "-", stdin=_backend("v1", "b", host="example.net"))
    assert kubectl.json("get", OLD, "b")["spec"] == {"address": "example.net:80", "replicas": 1}


def test_each_version_has_its_own_columns(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_backend("v1", "columns", host="h", port=1))
    assert kubectl("get", NEW, "columns").split()[:7] == ["NAME", "HOST", "PORT", "AGE", "columns", "h", "1"]
    assert kubectl("get", OLD, "columns").split()[:5] == ["NAME", "ADDRESS", "AGE", "columns", "h:1"]


def test_the_old_version_warns_of_itself_and_the_new_one_is_preferred(kubectl: Kubectl) -> None:
    warning = "legacy.example.com/v1beta1 Backend is deprecated; use legacy.example.com/v1 Backend"
    assert warning in kubectl.run("get", OLD).stderr
    assert kubectl.run("get", "backends").stderr.strip() in ("", "No resources found in default namespace.")


def test_both_versions_have_their_rules(kubectl: Kubectl) -> None:
    assert "should match" in kubectl.fails("create", "-f", "-", stdin=_backend("v1beta1", "bad", address="nowhere"))
    refused = kubectl.fails("create", "-f", "-", stdin=_backend("v1beta1", "bad", address="h:70000"))
    assert 'spec.address: Invalid value: "h:70000": must end with a port' in refused
    assert "less than or equal to 65535" in kubectl.fails(
        "create", "-f", "-", stdin=_backend("v1", "bad", host="h", port=70000)
    )


def test_it_is_scaled_and_edited_in_either_version(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=_backend("v1", "scaled", host="h"))
    kubectl("scale", f"{OLD}/scaled", "--replicas=3")
    assert kubectl.json("get", NEW, "scaled")["spec"]["replicas"] == 3
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/address: h:80/address: g:90/' $1\n")
    editor.chmod(0o700)
    assert "edited" in kubectl("edit", f"{OLD}/scaled", env={"EDITOR": str(editor)})
    assert kubectl.json("get", NEW, "scaled")["spec"] == {"host": "g", "port": 90, "replicas": 3}
