"""LeaseCandidates and their ranking."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of, part, text
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.machinery.times import parse_micro_time, parse_time

OLDEST_EMULATION_VERSION = "OldestEmulationVersion"
VALID_FOR = timedelta(minutes=30)
"""Time without renewal after which a candidate expires."""


class DifferentStrategies(PilothouseError):
    """Candidates of the same version request different strategies."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A LeaseCandidate with at least one renewal."""

    obj: Json
    renewed: datetime
    pinged: datetime | None

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def strategy(self) -> str:
        return text(self.obj, "spec", "strategy")

    @property
    def has_answered(self) -> bool:
        return self.pinged is None or self.renewed >= self.pinged

    @property
    def binary_version(self) -> tuple[Any, ...]:
        return _order(text(self.obj, "spec", "binaryVersion"))

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best leader first: oldest emulation version, then oldest binary version, then creation time."""
        created = parse_time(metadata(self.obj)["creationTimestamp"])
        return _order(text(self.obj, "spec", "emulationVersion")), self.binary_version, created

    @property
    def has_versions(self) -> bool:
        versions = (text(self.obj, "spec", name) for name in ("emulationVersion", "binaryVersion"))
        return all(map(_is_version, versions))


def candidate_of(obj: Json, now: datetime) -> Candidate | None:
    """Return the candidate; None if never renewed or expired."""
    renewed, pinged = moment_of(obj, "renewTime"), moment_of(obj, "pingTime")
    return None if renewed is None or now - renewed > VALID_FOR else Candidate(obj, renewed, pinged)


def moment_of(obj: Json, field: str) -> datetime | None:
    value = part(obj, "spec").get(field)
    return parse_micro_time(value) if value else None


def best_strategy(candidates: Sequence[Candidate]) -> str:
    """Return the strategy requested by the newest binary version. Raises DifferentStrategies."""
    best = candidates[0]
    for other in candidates[1:]:
        if best.binary_version < other.binary_version:
            best = other
        elif best.binary_version == other.binary_version and best.strategy != other.strategy:
            at = f'candidates "{best.name}", "{other.name}" at same binary version'
            raise DifferentStrategies(f"{at} but received differing strategies {best.strategy}, {other.strategy}")
    return best.strategy


def best_leader(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the leader by OldestEmulationVersion; None if no candidate has versions."""
    return min(
        (candidate for candidate in candidates if candidate.has_versions),
        key=lambda candidate: candidate.rank,
        default=None,
    )


def _order(version: str) -> tuple[Any, ...]:
    from pilothouse.machinery.cel.library import semver  # imported lazily: used by elections only

    return semver.parse(version.strip() if _is_version(version) else "0.0.0", normalize=True).order


def _is_version(version: str) -> bool:
    from pilothouse.machinery.cel.library import semver

    return semver.is_semver(version.strip(), normalize=True)
