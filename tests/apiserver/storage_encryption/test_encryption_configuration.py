"""The file that says what is encrypted."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.apiserver.storage.encryption.configuration import build_encryption, read_configuration
from pilothouse.apiserver.storage.encryption.validation import validate_configuration
from pilothouse.machinery.installation import extra_command
from pilothouse.machinery.names import GroupResource

KEY = {"name": "k", "secret": base64.b64encode(bytes(32)).decode()}


def config(*parts: tuple[list[str], list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": resources, "providers": providers} for resources, providers in parts],
    }


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (["Secrets"], "resource name should not contain capital letters"),
        (["*"], "use '*.' to encrypt all the resources from core API group"),
        (["secrets", "secrets"], "the same resource cannot be specified multiple times"),
        (["secrets", "*."], "using overlapping resources"),
        (["secrets", "*.*"], "using overlapping resources"),
        (["events.events.k8s.io"], "Use 'events' instead"),
        (["deployments.*"], "encrypting the same resource across groups is not supported"),
        (["serviceipallocations"], "resources which do not have REST API/s cannot be encrypted"),
        ([], "at least one resources[0].resources is required"),
    ],
)
def test_resources_that_make_no_sense_are_refused(resources: list[str], why: str) -> None:
    found = [str(error) for error in validate_configuration(config((resources, [{"identity": {}}])))]
    assert any(why in error for error in found)


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ({}, "provider does not contain any of the expected providers"),
        ({"identity": {}, "aescbc": {"keys": [KEY]}}, "more than one provider specified in a single element"),
        ({"aesgcm": {"keys": []}}, "at least one keys is required"),
        ({"aesgcm": {"keys": [{"name": "k"}]}}, "secret is a mandatory field for a key"),
        ({"aesgcm": {"keys": [{"name": "k", "secret": "%"}]}}, "secrets must be base64 encoded"),
        ({"secretbox": {"keys": [{"name": "k", "secret": "YWJj"}]}}, "got 3, expected one of [32]"),
        ({"kms": {"name": "a:b", "endpoint": "unix:///x", "apiVersion": "v2"}}, "must not contain ':'"),
        ({"kms": {"name": "a", "endpoint": "tcp://x", "apiVersion": "v2"}}, 'unsupported scheme "tcp"'),
        ({"kms": {"name": "a", "endpoint": "unix:///x", "apiVersion": "v3"}}, "only v1 and v2 are supported"),
        (
            {"kms": {"name": "a", "endpoint": "unix:///x", "cachesize": 0}},
            "or negative to disable",
        ),
        ({"kms": {"name": "a", "endpoint": "unix:///x", "apiVersion": "v2", "timeout": "-1s"}}, "positive value"),
    ],
)
def test_providers_that_make_no_sense_are_refused(provider: dict[str, Any], why: str) -> None:
    found = [str(error) for error in validate_configuration(config((["secrets"], [provider])))]
    assert any(why in error for error in found)


def test_what_is_wrong_with_a_secret_is_said_without_the_secret() -> None:
    wrong = config((["secrets"], [{"aesgcm": {"keys": [{"name": "k", "secret": "dG9vIHNob3J0"}]}}]))
    (error,) = validate_configuration(wrong)
    assert "dG9vIHNob3J0" not in str(error)
    assert "REDACTED" in str(error)


@pytest.mark.parametrize("version", [{}, {"apiVersion": "v1"}])
def test_the_first_version_of_kms_is_refused_as_upstream_does_without_its_gate(version: dict[str, Any]) -> None:
    configured = config((["secrets"], [{"kms": {"name": "a", "endpoint": "unix:///x", **version}}]))
    assert [*validate_configuration(configured)] == []
    with pytest.raises(ValueError) as refused:
        build_encryption(configured)
    assert str(refused.value) == (
        "error while building transformers: KMSv1 is deprecated and will only receive security updates going forward. "
        "Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
    )


def test_kms_without_grpc_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc.aio", None)
    kms = {"kms": {"name": "a", "endpoint": "unix:///x", "apiVersion": "v2"}}
    with pytest.raises(ValueError, match=re.escape(extra_command("kms"))):
        build_encryption(config((["secrets"], [kms])))


def test_an_entry_that_an_earlier_one_covers_is_refused() -> None:
    with pytest.raises(ValueError, match=r'resource "secrets\." is masked by earlier rule'):
        build_encryption(config((["*."], [{"identity": {}}]), (["secrets"], [{"identity": {}}])))


def test_what_is_said_about_a_resource_goes_before_its_group_and_that_before_everything() -> None:
    parts = [(["secrets"], "a"), (["*."], "b"), (["*.*"], "c")]
    keyed = [(names, [{"aesgcm": {"keys": [KEY | {"name": key}]}}]) for names, key in parts]
    encryption = build_encryption(config(*keyed))
    found = [encryption.of(GroupResource(*gr)) for gr in (("", "secrets"), ("", "pods"), ("apps", "deployments"))]
    assert len({id(transformer) for transformer in found}) == 3


@pytest.mark.parametrize("content", [b"", b"[]", b"kind: Other\napiVersion: v1\n", b"a: [\n"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError):
        read_configuration(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    wanted = config((["secrets"], [{"aesgcm": {"keys": [KEY]}}, {"identity": {}}]))
    path.write_bytes(orjson.dumps(wanted))
    assert read_configuration(path) == wanted
