"""Findings of `pilothouse doctor` and `pilothouse check`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pilothouse.machinery.dataclass import dataclass


class FindingOutcome(StrEnum):
    OK = "ok"
    NOTE = "note"  # worth knowing, not a fault
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Finding:
    step: str
    outcome: FindingOutcome
    text: str
    advice: str = ""


def ok(step: str, text: str) -> Finding:
    return Finding(step, FindingOutcome.OK, text)


def note(step: str, text: str, advice: str = "") -> Finding:
    return Finding(step, FindingOutcome.NOTE, text, advice)


def failed(step: str, text: str, advice: str = "") -> Finding:
    return Finding(step, FindingOutcome.FAILED, text, advice)


def render(findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        yield f"{finding.outcome:<7} {finding.step:<15} {finding.text}"
        if finding.advice:
            yield f"{'':<23} → {finding.advice}"
