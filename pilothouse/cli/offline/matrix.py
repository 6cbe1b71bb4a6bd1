"""Checks with several Kubernetes versions: the command runs once per version, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import orjson

from pilothouse.cli.offline.documents import STDIN, Checked, CheckReport, Finding, Severity
from pilothouse.cli.offline.output import render


def print_matrix(command: Sequence[str], arguments: Sequence[str], versions: Sequence[str], form: str) -> int:
    """Run `pilothouse COMMAND ARGUMENTS` for each version and print the results per version.

    Return the highest exit code of all versions. A command that cannot read a path prints its error once.
    """
    given = sys.stdin.buffer.read() if STDIN in arguments else b""
    at = arguments.index("--") if "--" in arguments else len(arguments)

    def run(version: str) -> subprocess.CompletedProcess[bytes]:
        chosen = (f"--kubernetes-version={version}", "--output=json")
        words = [*command, *arguments[:at], *chosen, *arguments[at:]]
        program = (sys.executable, "-X", "utf8", "-m", "pilothouse.cli.main")
        return subprocess.run([*program, *words], input=given, capture_output=True, check=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ended = list(pool.map(run, versions))
    worst = max(ended, key=lambda process: process.returncode)
    if worst.returncode > 1:
        sys.stderr.write(worst.stderr.decode(errors="replace"))
        return worst.returncode
    title = " ".join(command)
    reports = {version: _report(title, process.stdout) for version, process in zip(versions, ended, strict=True)}
    print(render_matrix(reports, form), end="")
    return worst.returncode


def render_matrix(reports: dict[str, CheckReport], form: str) -> str:
    """Return the reports of all versions in one text of the format."""
    rendered = {version: render(report, form, version) for version, report in reports.items()}
    if form == "json":
        values = {version: orjson.loads(text) for version, text in rendered.items()}
        return orjson.dumps({"versions": values}, option=orjson.OPT_INDENT_2).decode() + "\n"
    if form == "junit":
        return _one_document(list(rendered.values()))
    return "".join(rendered.values())


def _one_document(documents: Sequence[str]) -> str:
    """Return one JUnit document with the test suites and the sums of all documents."""
    from xml.etree.ElementTree import fromstring, indent, tostring

    first, *others = (fromstring(document.encode()) for document in documents)
    for other in others:
        first.extend(other)
        for name in ("tests", "failures", "errors"):
            first.set(name, str(int(first.get(name, "0")) + int(other.get(name, "0"))))
    indent(first)
    document: bytes = tostring(first, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"


def _report(title: str, output: bytes) -> CheckReport:
    """Read the report that a command has printed as JSON."""
    return CheckReport(
        title,
        tuple(
            Checked(
                result["file"],
                result["line"],
                result["name"],
                tuple(
                    Finding(
                        Severity(finding["severity"]),
                        finding["file"],
                        finding["line"],
                        finding["message"],
                        result["name"],
                        finding["field"],
                        finding["hint"],
                    )
                    for finding in result["findings"]
                ),
            )
            for result in orjson.loads(output)["results"]
        ),
    )
