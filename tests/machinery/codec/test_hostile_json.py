"""Bodies that were made to be dear: each is read in a few passes of a fast parser, whatever is wrong with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import hostile_bodies
import pytest

from pilothouse.machinery.codec.decoder import Codec, decode_body
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.codec.scheme import KUBE
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.schema import types

REVIEW = GroupVersionKind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
SIZE = 300_000
FEW_PASSES = 200
"""It is 10 to 30. What grows with the square of the size is thousands, so that no slow machine comes between."""


def processor_time(work: Callable[[], Any]) -> float:
    """The least of three, in seconds of this thread alone, so that other work on the machine does not count."""
    spent = []
    for _ in range(3):
        began = time.thread_time()
        work()
        spent.append(time.thread_time() - began)
    return min(spent)


def strict_errors(data: bytes) -> tuple[str, ...]:
    return decode_body(data, codec=Codec.JSON, default=REVIEW, scheme=KUBE).strict_errors


@pytest.mark.parametrize(
    "make",
    [
        hostile_bodies.nested_duplicate_keys,
        hostile_bodies.flat_duplicate_keys,
        hostile_bodies.unknown_field_with_a_long_list,
        hostile_bodies.unknown_fields,
    ],
)
def test_strict_errors_cost_no_more_than_a_multiple_of_parsing(make: Callable[[int], bytes]) -> None:
    body = make(SIZE)
    assert strict_errors(body)
    assert processor_time(lambda: strict_errors(body)) < FEW_PASSES * processor_time(lambda: json.loads(body))


@pytest.mark.parametrize("make", [hostile_bodies.broken_json_at_the_end, hostile_bodies.broken_numbers_at_the_end])
def test_a_fault_at_the_end_costs_no_more_than_a_multiple_of_parsing(make: Callable[[int], bytes]) -> None:
    body = make(SIZE)

    def refuse() -> None:
        with pytest.raises(JsonError, match="invalid character '!' after object key:value pair"):
            parse(body)

    whole = body[:-1] + b"}"
    assert processor_time(refuse) < FEW_PASSES * processor_time(lambda: json.loads(whole))


def test_keys_repeated_far_inside_a_long_path_are_named_without_writing_the_path_for_each() -> None:
    path = "k" * 100_000
    repeats = ",".join(['"a":1'] * 20_000)
    body = f'{{"{path}":{{{repeats}}}}}'.encode()
    assert parse(body).duplicates == (f'duplicate field "{path}.a"',)
    assert processor_time(lambda: parse(body)) < 5


def test_strict_errors_are_not_much_longer_than_their_body() -> None:
    path = "k" * 200_000
    unknown = {f"x{at}": 1 for at in range(200)}
    schema = {"properties": {path: unknown}}
    kind = types.of(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    assert kind is not None
    found = kind.decode({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}).strict_errors
    assert len(found) > 1
    assert sum(map(len, found)) < 2_000_000
