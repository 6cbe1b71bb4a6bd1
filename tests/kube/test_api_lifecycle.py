"""The API lifecycle of kinds, checked against the types of each release."""

from __future__ import annotations

import pytest

from pilothouse.kube.api_lifecycle import LIFECYCLES
from pilothouse.machinery.names import GroupVersionKind
from tools.builtin_types.differences import structs_of
from tools.builtin_types.sources import go_structs, parsed

VERSIONS = (34, 35, 36, 37)


@pytest.mark.parametrize("minor", VERSIONS)
def test_each_served_kind_has_a_type(minor: int) -> None:
    packages = parsed(structs_of(f"1.{minor}", go_structs()))

    def has_type(kind: GroupVersionKind) -> bool:
        package = f"k8s.io.api.{kind.group.partition('.')[0]}.{kind.version}"
        return package in packages and kind.kind in packages[package].kinds

    served = [kind for kind, lifecycle in LIFECYCLES.items() if lifecycle.is_served(minor, minor)]
    assert [str(kind) for kind in served if not has_type(kind)] == []


def test_each_kind_is_served_in_some_release() -> None:
    never = [
        str(kind)
        for kind, lifecycle in LIFECYCLES.items()
        if not any(lifecycle.is_served(minor, minor) for minor in VERSIONS)
    ]
    assert never == []
