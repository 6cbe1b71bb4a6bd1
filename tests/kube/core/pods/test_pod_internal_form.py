"""Parts of pods as messages print them: every field that the type has, whether upstream's table lists it or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilothouse.kube.core.pods import internal_form as printing
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.internal_types import TYPES
from pilothouse.machinery.schema import types

HELD_FOR_THE_SPEC = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"}


@pytest.fixture
def shorter_toleration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(TYPES, "Toleration", "Key:s Operator:s")
    printing._fields.cache_clear()
    yield
    printing._fields.cache_clear()


@pytest.mark.parametrize("kind", TYPES)
def test_the_table_lists_no_field_that_the_type_lacks(kind: str) -> None:
    struct = types.definition(f"io.k8s.api.core.v1.{kind}")
    assert struct is not None
    listed = {field.json_name for field in printing._fields(kind)}
    assert listed - struct.fields.keys() == (HELD_FOR_THE_SPEC if kind == "PodSecurityContext" else set())


def test_a_field_that_the_table_lacks_is_printed_after_the_others(shorter_toleration: None) -> None:
    printed = internal_form("Toleration", {"key": "a", "effect": "NoExecute"})
    assert printed is not None
    assert list(printed) == ["Key", "Operator", "Value", "Effect", "TolerationSeconds"]
    assert printed["Effect"] == "NoExecute"
