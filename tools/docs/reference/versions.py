"""The page of changes between Kubernetes versions, from `docs/reference/versions.yaml` and `version_rules.py`."""

from __future__ import annotations

from collections import Counter

import yaml

from pilothouse.machinery import release
from pilothouse.machinery.version_rules import RULES
from tools.docs.pages import DOCS
from tools.docs.reference.markdown import page, table

STATES = {
    "version": "each served version behaves as upstream's version",
    "always": "every served version has the newer behaviour",
    "missing": "no served version has the newer behaviour",
    "gated": "implemented; the gate is disabled by default, as upstream",
    "refused": "the gate is rejected, and the API is not served",
    "outside": "concerns kubelet, kube-proxy, other binaries or Go programs",
}
_REQUIRED, _OPTIONAL = {"since", "area", "change", "state"}, {"gate"}


def versions_page() -> str:
    """Raises ValueError for a change with a missing, empty or unknown field."""
    changes = version_changes() + _rules()
    parts = [
        f"The default version is {release.DEFAULT}. The changes of each version, and their state here:",
        "## Served versions",
        table(
            ["version", "as"], [[each.name, f"kube-apiserver {each.git_version}"] for each in release.RELEASES.values()]
        ),
        "## States",
        table(["state", "", "changes"], _states(changes)),
    ]
    for version in sorted({change["since"] for change in changes}):
        parts.append(f"## New in {version}")
        parts.append(_table([change for change in changes if change["since"] == version]))
    return page("Kubernetes versions", *parts, tested=_TESTED)


_TESTED = (
    "the page is generated from `docs/reference/versions.yaml` and the rules in the code; `tests/docs/test_versions.py`"
    " checks the data."
)


def version_changes() -> list[dict[str, str]]:
    changes: list[dict[str, str]] = yaml.safe_load((DOCS / "reference" / "versions.yaml").read_text())
    for change in changes:
        fields = set(change)
        if (
            not _REQUIRED <= fields <= _REQUIRED | _OPTIONAL
            or not all(change.values())
            or change["state"] not in STATES
        ):
            raise ValueError(
                f"{change.get('change')}: a change has {', '.join(sorted(_REQUIRED))}, perhaps"
                f" {', '.join(sorted(_OPTIONAL))}, and one of the states {', '.join(STATES)}"
            )
    return changes


def _rules() -> list[dict[str, str]]:
    return [
        {
            "since": f"1.{rule.since or rule.until}",
            "area": "Rules",
            "change": rule.change if rule.since else f"no longer: {rule.change}",
            "rule": rule.name,
            "state": "version",
        }
        for rule in RULES.values()
    ]


def _states(changes: list[dict[str, str]]) -> list[list[str]]:
    counted = Counter(change["state"] for change in changes)
    return [[state, meaning, str(counted[state])] for state, meaning in STATES.items()]


def _table(changes: list[dict[str, str]]) -> str:
    rows = [[change["area"], change["change"], _condition(change), change["state"]] for change in changes]
    return table(["area", "change", "feature gate or rule", "state"], rows)


def _condition(change: dict[str, str]) -> str:
    return " ".join(f"`{change[name]}`" for name in ("gate", "rule") if name in change)
