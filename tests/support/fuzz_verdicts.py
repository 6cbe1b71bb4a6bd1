"""Whether an answer is one that a client of Kubernetes may get."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import yaml

from pilothouse.machinery.protobuf import codec
from pilothouse.testing import Answer

_UPSTREAM_S_OWN = (
    "strconv.ParseUint: ",
    "target.",
    "[target.",
    "failed to convert new object ",
    "failed to create typed patch object ",
    "failed to create manager for existing fields: ",
    "failed to create typed live object ",
    "map: map[",
    "resourceVersion should not be set on objects to be created",
    "resourceVersion: Invalid value: ",
    "no preferred addresses found",
    "Internal error occurred: failed to generate token",
    "The order in patch list",
    "unable to find api field in struct",
)
"""Messages of errors that upstream, too, answers with 500, for it has no code of its own for them."""


_READERS: dict[str, Callable[[bytes], Any]] = {
    "application/json": orjson.loads,
    "application/yaml": yaml.safe_load,
    "application/vnd.kubernetes.protobuf": codec.decode,
}


def check(answer: Answer) -> None:
    """A success, or a Status that says what is wrong."""
    read = _READERS.get(answer.headers.get("content-type", "").partition(";")[0])
    if answer.status < 400 or read is None:
        assert answer.status < 500, answer.body
        return
    status = read(answer.body)
    assert (status["kind"], status["code"]) == ("Status", answer.status)
    if answer.status >= 500 and answer.status not in (503, 504):
        assert status["message"].startswith(_UPSTREAM_S_OWN), status


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Of the processor's time, so that a busy machine does not count, nor garbage that the fuzzer itself has made."""
    gc.disable()
    start = time.process_time()
    yield
    gc.enable()
    assert (used := time.process_time() - start) < seconds, f"took {used:.1f} s"
