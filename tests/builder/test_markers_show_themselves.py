"""Every marker has an example that runs and makes a schema."""

from __future__ import annotations

import doctest
from typing import Any, get_origin

import pytest

from pilothouse.builder.types import markers
from pilothouse.builder.types.wire import schema_of

ALL = [
    each
    for each in vars(markers).values()
    if isinstance(each, type) and issubclass(each, markers.Marker) and each is not markers.Marker
]


@pytest.mark.parametrize("marker", ALL, ids=lambda marker: marker.__name__)
def test_a_marker_has_an_example_that_makes_a_schema(marker: type[markers.Marker]) -> None:
    known: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(marker.__doc__ or ""):
        exec(example.source, known)
    annotations = [each for each in known.values() if get_origin(each) is not None]
    assert annotations, f"{marker.__name__} has no example"
    assert all(schema_of(each) for each in annotations)
