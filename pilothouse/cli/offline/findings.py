"""Findings of a check, with their positions. Every output format renders these."""

from __future__ import annotations

from enum import StrEnum

from pilothouse.machinery.dataclass import dataclass


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one object, or about a whole file if `subject` is empty. Lines count from 1."""

    severity: Severity
    file: str
    line: int
    message: str
    subject: str = ""
    field: str = ""
    hint: str = ""
    """Next step; empty if the message already names it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked object or case, with its findings."""

    file: str
    line: int
    subject: str
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All checks, in file order. `title` names the command."""

    title: str
    checked: tuple[Checked, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for checked in self.checked for finding in checked.findings]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def passed(self) -> bool:
        return all(checked.passed for checked in self.checked)
