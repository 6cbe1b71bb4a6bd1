"""What kubectl reads from the OpenAPI documents: explanations, in both document versions."""

from __future__ import annotations

import re

import pytest
from kubectl import Kubectl

V2 = "--output=plaintext-openapiv2"


def test_explain_shows_a_kind_with_its_fields(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "configmaps")
    assert re.search(r"^KIND: +ConfigMap\nVERSION: +v1$", shown, re.MULTILINE)
    assert "ConfigMap holds configuration data for pods to consume." in shown
    assert re.search(r"^  binaryData\t<map\[string\]string>$", shown, re.MULTILINE)


def test_explain_goes_down_recursively_into_the_metadata(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "configmaps", "--recursive")
    assert re.search(
        r"^    ownerReferences\t<\[\]OwnerReference>\n      apiVersion\t<string> -required-$", shown, re.MULTILINE
    )


def test_explain_finds_a_nested_field(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "namespaces.status.conditions.type")
    assert "FIELD: type <string>" in shown
    assert "Type of namespace controller condition." in shown


def test_explain_says_which_field_there_is_not(kubectl: Kubectl) -> None:
    assert 'field "nosuch" does not exist' in kubectl.fails("explain", "secrets.nosuch")


@pytest.mark.parametrize("kind", ["configmaps", "namespaces", "secrets"])
def test_old_clients_read_the_same_from_the_protobuf_document(kubectl: Kubectl, kind: str) -> None:
    new, old = kubectl("explain", kind, "--recursive"), kubectl("explain", kind, "--recursive", V2)
    fields = re.compile(r"^ +(\w+)\t<", re.MULTILINE)
    assert fields.findall(new) == fields.findall(old)
    assert len(fields.findall(new)) > 20
