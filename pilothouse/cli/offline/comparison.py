"""What a server said against what a case expects, as lines with - and +."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from pilothouse.cli.offline.cases import Expectation, says
from pilothouse.cli.offline.server import CallAnswer

_BY_POLICY = ("ValidatingAdmissionPolicy '", "MutatingAdmissionPolicy '", "policy '")


def differences(expect: Expectation, answer: CallAnswer, about: str) -> Iterator[str]:
    """Yield one text for each thing that is otherwise than expected. `about`: see `refused_by_other`."""
    allowed = answer.is_well or answer.is_there_already
    message = "" if allowed else str(answer.body.get("message", ""))
    if allowed is not expect.allowed or (expect.message and not says(expect.message, message)):
        yield _diff(_verdict(expect.allowed, expect.message), _verdict(allowed, message))
    elif not allowed and not expect.message and refused_by_other(answer, about):
        yield _diff(f"denied by {_AUTHORS[about]}", f"denied for another reason: {message}")
    for warning in expect.warnings:
        if not any(says(warning, said) for said in answer.warnings):
            yield _diff(f"warning: {warning}", f"warnings: {'; '.join(answer.warnings) or 'none'}")
    if expect.object is not None and answer.is_well:
        yield from _of_values(expect.object, answer.body, "object")


_AUTHORS = {"policy": "a policy", "cel": "the rules of its definition"}


def refused_by_other(answer: CallAnswer, about: str) -> bool:
    """Whether neither a policy ("policy") nor a schema ("cel") refused it: then the case shows nothing."""
    message = str(answer.body.get("message", ""))
    by_policy = any(words in message for words in _BY_POLICY)
    return not by_policy if about == "policy" else by_policy or answer.status != 422


def _verdict(allowed: bool, message: str) -> str:
    verdict = "allowed" if allowed else "denied"
    return f"{verdict}: {message}" if message else verdict


def _diff(expected: str, got: str, where: str = "") -> str:
    head = f"{where} is not as expected" if where else "the answer is not as expected"
    return f"{head}\n- {expected}\n+ {got}"


def _of_values(expected: Any, got: Any, where: str) -> Iterator[str]:
    """Yield where fields that are expected are otherwise; those that are not named may be anything."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, value in expected.items():
            yield from _of_values(value, got.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for at, (value, other) in enumerate(zip(expected, got, strict=True)):
            yield from _of_values(value, other, f"{where}[{at}]")
    elif expected != got:
        yield _diff(_shown(expected), _shown(got), where)


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()
