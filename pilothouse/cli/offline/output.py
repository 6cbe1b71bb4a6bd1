"""A report as text, JSON, JUnit XML or GitHub workflow commands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from io import BytesIO
from typing import Any

import orjson

from pilothouse.cli.offline.documents import Checked, CheckReport, Finding, NothingToRead, Severity

FORMS = ("text", "json", "junit", "github")


def print_report(checking: Coroutine[Any, Any, CheckReport], form: str) -> int:
    """Run the check, print the report and return the exit code: 0 without errors, 1 with errors, 2 if a path is
    unreadable.
    """
    try:
        report = asyncio.run(checking)
    except NothingToRead as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(render(report, form), end="")
    return 0 if report.passed else 1


def render(report: CheckReport, form: str, version: str = "") -> str:
    """Return the report in the given format, with a trailing newline. `version` names the Kubernetes version."""
    return _FORMS[form](report, f"Kubernetes {version}" if version else "")


def _text(report: CheckReport, version: str) -> str:
    lines = [f"{version}:"] if version else []
    lines += [line for finding in report.findings for line in _text_lines(finding)]
    thing, done, good, bad = ("object", "checked", "valid", "invalid")
    if report.title != "validate":
        thing, done, good, bad = ("case", "run", "passed", "failed")
    total, failed = len(report.checked), sum(not checked.passed for checked in report.checked)
    warnings = report.count(Severity.WARNING)
    more = f", {_counted(warnings, 'warning')}" if warnings else ""
    return "\n".join([*lines, f"{_counted(total, thing)} {done}: {total - failed} {good}, {failed} {bad}{more}", ""])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _text_lines(finding: Finding) -> list[str]:
    subject = f"{finding.subject}: " if finding.subject else ""
    first, *more = finding.message.splitlines() or [""]
    lines = [f"{finding.file}:{finding.line}: {finding.severity}: {subject}{first}", *(f"    {line}" for line in more)]
    return [*lines, f"    hint: {finding.hint}"] if finding.hint else lines


def _json(report: CheckReport, version: str) -> str:
    value = {
        "checked": len(report.checked),
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "results": [_json_of(checked) for checked in report.checked],
    }
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _json_of(checked: Checked) -> dict[str, Any]:
    findings = [
        {
            "severity": str(finding.severity),
            "file": finding.file,
            "line": finding.line,
            "message": finding.message,
            "field": finding.field,
            "hint": finding.hint,
        }
        for finding in checked.findings
    ]
    return {
        "file": checked.file,
        "line": checked.line,
        "name": checked.subject,
        "ok": checked.passed,
        "findings": findings,
    }


def _github(report: CheckReport, version: str) -> str:
    """Return workflow commands, which GitHub shows next to the lines of a pull request."""
    lines = []
    for finding in report.findings:
        place = f"file={_escaped(finding.file, property_=True)},line={finding.line}"
        message = f"{finding.message} ({finding.hint})" if finding.hint else finding.message
        subject = ", ".join(filter(None, (finding.subject, version)))
        title = f",title={_escaped(subject, property_=True)}" if subject else ""
        lines.append(f"::{finding.severity} {place}{title}::{_escaped(message)}\n")
    return "".join(lines)


def _escaped(text: str, *, property_: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property_ else text


def _junit(report: CheckReport, version: str) -> str:
    from xml.etree.ElementTree import Element, ElementTree, indent

    failed = sum(not checked.passed for checked in report.checked)
    counts = {"tests": str(len(report.checked)), "failures": str(failed), "errors": "0"}
    suites = Element("testsuites", {"name": "pilothouse", **counts})
    suite = Element("testsuite", {"name": f"pilothouse {report.title} {version}".rstrip(), **counts})
    suite.extend(_test_case(checked) for checked in report.checked)
    suites.append(suite)
    indent(suites)
    stream = BytesIO()
    ElementTree(suites).write(stream, encoding="utf-8", xml_declaration=True)
    return stream.getvalue().decode() + "\n"


def _test_case(checked: Checked) -> Any:
    from xml.etree.ElementTree import Element, SubElement

    attributes = {"name": checked.subject or checked.file, "classname": checked.file, "file": checked.file}
    case = Element("testcase", {name: _printable(value) for name, value in attributes.items()})
    case.set("line", str(checked.line))
    for severity, tag in ((Severity.ERROR, "failure"), (Severity.WARNING, "system-out")):
        findings = [finding for finding in checked.findings if finding.severity is severity]
        if findings:
            part = SubElement(case, tag)
            part.text = _printable("\n".join(line for finding in findings for line in _text_lines(finding)))
            if severity is Severity.ERROR:
                part.set("message", _printable(findings[0].message))
    return case


def _printable(text: str) -> str:
    """Replace control characters, which XML does not allow."""
    return "".join(char if char in "\t\n\r" or char >= " " else "�" for char in text)


_FORMS: dict[str, Callable[[CheckReport, str], str]] = {
    "text": _text,
    "json": _json,
    "junit": _junit,
    "github": _github,
}
