"""The findings of a check, each with its place: what every form of output is made from."""

from __future__ import annotations

from enum import StrEnum

from pilothouse.machinery.dataclass import dataclass


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about one object, or about a whole file where `subject` is empty. Lines count from 1."""

    severity: Severity
    file: str
    line: int
    message: str
    subject: str = ""
    field: str = ""
    hint: str = ""
    """What to do about it; empty where the message says so."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One object, or one case, that was looked at, and what was found about it."""

    file: str
    line: int
    subject: str
    findings: tuple[Finding, ...] = ()

    @property
    def is_well(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All that was looked at, in the order of the files. `title` names the check."""

    title: str
    checked: tuple[Checked, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for checked in self.checked for finding in checked.findings]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def is_well(self) -> bool:
        return all(checked.is_well for checked in self.checked)
