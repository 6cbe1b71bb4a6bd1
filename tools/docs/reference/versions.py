"""The page of changes between Kubernetes versions, from `versions.yaml`, the rules and the feature gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import yaml

from pilothouse.apiserver.server.features import HONOURED, WITHOUT_EFFECT
from pilothouse.apiserver.server.known_features import PRE_ALPHA, Spec, known_gates
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
        parts.append(f"### Feature gates of {version}")
        parts.append(
            table(["feature gate", "before", version, "here"], list(_gate_changes(release.RELEASES[version].minor)))
        )
    return page("Kubernetes versions", *parts, tested=_TESTED)


_TESTED = (
    "the page is generated from `docs/reference/versions.yaml` and the code; `tests/docs/test_versions.py`"
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


def _gate_changes(minor: int) -> Iterator[list[str]]:
    """Yield the gates whose spec differs from the version before: name, spec before, spec, effect here."""
    before, after = (known_gates(each, each, each - 1).specs for each in (minor - 1, minor))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield [f"`{name}`", _spec(before.get(name)), _spec(after.get(name)), _effect(name, after.get(name))]


def _spec(spec: Spec | None) -> str:
    if spec is None or spec.stage == PRE_ALPHA:
        return ""
    return f"{(spec.stage or 'GA').lower()}, {'on' if spec.default else 'off'}{', locked' if spec.locked else ''}"


def _effect(name: str, spec: Spec | None) -> str:
    if spec is None or spec.locked:
        return ""
    if name in HONOURED:
        return "implemented"
    return "no effect on responses" if name in WITHOUT_EFFECT else "fixed: changes of the default are rejected"


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
