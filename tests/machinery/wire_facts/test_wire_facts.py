"""The table of Go's struct facts: the format's every mark, and its completeness."""

from __future__ import annotations

import pytest

from pilothouse.machinery.generated import packages
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.wire_facts import (
    META,
    SCALARS,
    FieldFacts,
    Label,
    MessageName,
    facts_of,
    is_kind,
    is_list,
    message_of,
    messages_of,
)

CORE = "k8s.io.api.core.v1"
# Messages whose JSON form is not an object with fields, so that the table has no line for them.
VALUES = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity",
    f"{META}.Time",
    f"{META}.MicroTime",
    f"{META}.Duration",
    f"{META}.FieldsV1",
    "k8s.io.apimachinery.pkg.runtime.RawExtension",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
} | {
    f"k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.{name}"
    for version in ("v1", "v1beta1")
    for name in ("JSON", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrStringArray")
}


def test_a_pointer_with_a_named_go_type_is_read_whole() -> None:
    assert facts_of(CORE, "Container")["restartPolicy"] == FieldFacts(
        name="restartPolicy",
        number=24,
        type="string",
        label=Label.OPTIONAL,
        pointer=True,
        omitempty=True,
        omitzero=False,
        inline=False,
        go_type="v1.ContainerRestartPolicy",
    )


def test_labels_types_of_other_packages_and_go_names_are_read() -> None:
    limits = facts_of(CORE, "ResourceRequirements")["limits"]
    assert (limits.label, limits.type) == (Label.MAP, "k8s.io.apimachinery.pkg.api.resource.Quantity")
    assert limits.go_type == "v1.ResourceList"
    assert facts_of(CORE, "PodSpec")["containers"].go_type == "[]v1.Container"
    assert facts_of(CORE, "Secret")["data"].go_type == "map[string][]uint8"
    assert not facts_of(CORE, "PodSpec")["containers"].omitempty


def test_inlined_structs_and_omitzero_are_marked() -> None:
    assert facts_of(CORE, "Volume")["volumeSource"].inline
    assert facts_of(META, "ObjectMeta")["creationTimestamp"].omitzero


def test_fields_come_in_the_order_of_the_go_struct() -> None:
    assert list(facts_of(CORE, "Container"))[:8] == [
        "name", "image", "command", "args", "workingDir", "ports", "envFrom", "env",
    ]  # fmt: skip


def test_kinds_and_bare_lists_are_told_apart_from_plain_messages() -> None:
    assert is_kind(CORE, "Pod")
    assert not is_kind(CORE, "PodSpec")
    assert is_list("k8s.io.api.authentication.v1", "ExtraValue")
    assert not is_kind("k8s.io.api.core.v1/../../etc", "Pod")


def test_every_type_that_a_field_names_is_known() -> None:
    fields = (
        f for package in packages() for message in messages_of(package) for f in facts_of(package, message).values()
    )
    named = {field.type for field in fields} - SCALARS - VALUES
    assert [name for name in named if not is_known(*name.rsplit(".", 1))] == []


def is_known(package: str, message: str) -> bool:
    return package in packages() and (message in messages_of(package) or is_list(package, message))


def test_an_unknown_message_is_a_key_error() -> None:
    for package, message in [(CORE, "Nothing"), ("example.com.v1", "Pod")]:
        with pytest.raises(KeyError):
            facts_of(package, message)


@pytest.mark.parametrize(
    ("gvk", "message"),
    [
        (GroupVersionKind("", "v1", "Pod"), MessageName(CORE, "Pod")),
        (GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role"), MessageName("k8s.io.api.rbac.v1", "Role")),
        (GroupVersionKind("", "v1", "Status"), MessageName(META, "Status")),
        (GroupVersionKind("apps", "v1", "DeleteOptions"), MessageName(META, "DeleteOptions")),
        (GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadata"), MessageName(META, "PartialObjectMetadata")),
        (
            GroupVersionKind("meta.k8s.io", "v1beta1", "PartialObjectMetadata"),
            MessageName(META, "PartialObjectMetadata"),
        ),
        (GroupVersionKind("meta.k8s.io", "v1", "Table"), None),
        (GroupVersionKind("", "v1", "PodSpec"), None),
        (GroupVersionKind("apps", "v9", "Deployment"), None),
        (GroupVersionKind("apps.example.com", "v1", "Deployment"), None),
    ],
)
def test_a_kind_finds_its_message(gvk: GroupVersionKind, message: MessageName | None) -> None:
    assert message_of(gvk) == message
