"""Namespaces whose labels make no sense, or have no effect."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.kube.admission.podsecurity.policy import Level, Policy, label_of
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import FieldError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata, name_of


def refusal_of_labels(attributes: Attributes, errors: Iterable[FieldError]) -> Invalid:
    return Invalid.of(attributes.kind.group_kind, attributes.name, errors)


def exempt_namespace_warning(namespace: Json, policy: Policy, defaults: Policy) -> str:
    """Says which of the namespace's labels nobody will look at; empty where there are none."""
    if policy.is_privileged or policy.is_equivalent(defaults):
        return ""
    labels = metadata(namespace).get("labels") or {}
    said = [
        f"{mode}={wanted}"
        for mode, wanted in policy.modes.items()
        if wanted.level is not Level.privileged and {label_of(mode), label_of(mode) + "-version"} & set(labels)
    ]
    ignored = f"the policy ({', '.join(said)}) will be ignored"
    return f"namespace {quote(name_of(namespace))} is exempt from Pod Security, and {ignored}"
