"""From the path of a field to its line."""

from __future__ import annotations

import pytest

from pilothouse.cli.offline.documents import Lines

_TEXT = b"""metadata:
  labels:
    app.example.com/name: a
spec:
  containers:
  - name: a
    ports: [{containerPort: 1},
            {containerPort: 2}]
  - name: b
    image: c
data: {"a.b": 1}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 1),
        ("spec", 4),
        ("spec.containers", 5),
        ("spec.containers[0]", 6),
        ("spec.containers[0].ports[1].containerPort", 8),
        ("spec.containers[1].image", 10),
        ("metadata.labels[app.example.com/name]", 3),
        ("data[a.b]", 11),
        ("spec.containers[1].resources.limits", 9),
        ("spec.containers[7].image", 5),
        ("spec.containers.name", 5),
        ("nowhere", 1),
    ],
)
def test_a_field_or_what_is_nearest_around_it_has_a_line(path: str, line: int) -> None:
    assert Lines(_TEXT).of(path) == line


def test_json_has_lines_too() -> None:
    assert Lines(b'{\n\t"spec": {\n\t\t"replicas": 1\n\t}\n}').of("spec.replicas") == 3


def test_a_text_that_cannot_be_read_has_one_line() -> None:
    assert Lines(b"a: [").of("a") == 1
