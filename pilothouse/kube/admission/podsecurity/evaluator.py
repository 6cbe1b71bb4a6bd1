"""Evaluation of a pod at a level and version."""

from __future__ import annotations

from functools import lru_cache

from pilothouse.kube.admission.podsecurity.baseline import BASELINE_CHECKS
from pilothouse.kube.admission.podsecurity.checks import CheckedPod, CheckPod, Violation
from pilothouse.kube.admission.podsecurity.policy import Level, LevelVersion
from pilothouse.kube.admission.podsecurity.restricted import RESTRICTED_CHECKS

_NEWEST = max(minor for check in (*BASELINE_CHECKS, *RESTRICTED_CHECKS) for minor in check.revisions)


def evaluate(wanted: LevelVersion, pod: CheckedPod) -> list[Violation]:
    """Return the violations of the pod."""
    if wanted.level is Level.privileged:
        return []
    minor = _NEWEST if wanted.minor is None else min(wanted.minor, _NEWEST)
    result = (check(pod) for check in _checks(wanted.level, minor))
    return [violation for violation in result if violation is not None]


@lru_cache
def _checks(level: Level, minor: int) -> tuple[CheckPod, ...]:
    """Return the checks of the level. The restricted level includes baseline checks without an override."""
    own = [] if level is Level.baseline else [check for check in RESTRICTED_CHECKS if check.revision(minor)]
    overridden = {name for check in own for name in check.overrides}
    inherited = [check for check in BASELINE_CHECKS if check.id not in overridden]
    revisions = (check.revision(minor) for check in (*inherited, *own))
    return tuple(revision for revision in revisions if revision is not None)


def in_detail(violations: list[Violation]) -> str:
    return ", ".join(map(str, violations))


def in_short(violations: list[Violation]) -> str:
    return ", ".join(violation.reason for violation in violations)
