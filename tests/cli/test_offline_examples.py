"""The examples of docs/how-to/offline-checks.md hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.offline.trial import run_case_files
from pilothouse.cli.offline.validating import ValidationRequest, validate

_EXAMPLES = Path(__file__).parents[2] / "examples" / "offline"


@pytest.mark.parametrize("about", ["policy", "cel"])
def test_the_cases_go_as_they_expect(about: str) -> None:
    report = asyncio.run(run_case_files([str(_EXAMPLES / f"{about}-cases.yaml")], about))
    assert (len(report.checked), report.findings) == (2, [])


def test_the_manifests_are_well_but_not_for_everybody() -> None:
    given = [str(_EXAMPLES / name) for name in ("crds", "policies", "rbac")]
    asked = ValidationRequest([str(_EXAMPLES / "manifests")], given, User("ann"))
    (finding,) = asyncio.run(validate(asked)).findings
    assert 'User "ann" cannot create resource "backups" in API group "example.com"' in finding.message
