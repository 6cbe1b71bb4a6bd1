"""Annotations of replica sets: revision, revision history, and deployment size at the last scaling."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.deployment.fenceposts import max_size
from pilothouse.controllers.deployment.replica_sets import Age, age, size
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.objects import Json, annotations_of

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

NOT_COPIED = frozenset((_LAST_APPLIED, REVISION, HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO))
"""Annotations that are not copied between deployment and replica set."""

MAX_HISTORY_CHARACTERS = 2000
_MAX_INT32 = 2**31 - 1


def revision_of(obj: Json) -> int | None:
    """Return the revision; 0 if absent, None if not a number."""
    text = annotations_of(obj).get(REVISION)
    return 0 if text is None else _number(text)


def max_revision(replica_sets: Iterable[Json]) -> int:
    return max((revision_of(each) or 0 for each in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Json]) -> int:
    """Return the second highest revision; 0 if there is none."""
    known = sorted((revision for each in replica_sets if (revision := revision_of(each)) is not None), reverse=True)
    return max(0, known[1]) if len(known) > 1 else 0


def by_revision(replica_set: Json) -> tuple[int, Age]:
    """Sort key from oldest to newest revision; invalid revisions sort first."""
    return (revision_of(replica_set) or 0, age(replica_set))


def copied_annotations(deployment: Json) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}


def size_annotations(deployment: Json) -> dict[str, str]:
    """Return the annotations that record the deployment's size on a replica set."""
    return {DESIRED_REPLICAS: str(size(deployment)), MAX_REPLICAS: str(max_size(deployment))}


def annotations_of_new_set(deployment: Json, replica_set: Json, revision: int) -> dict[str, str]:
    """Return the desired annotations of the new replica set.

    The revision only increases. On a rollback, the previous revision is appended to the revision history.
    """
    annotations = annotations_of(replica_set) | copied_annotations(deployment)
    known = annotations.get(REVISION)
    before = _number(known) if known else 0
    if before is None or before >= revision:
        return annotations
    annotations[REVISION] = str(revision)
    if known is not None:
        annotations[HISTORY] = _history(annotations.get(HISTORY, ""), known)
    return annotations


def desired_replicas(replica_set: Json) -> int | None:
    """Return the deployment's size when this replica set was last scaled; None if unknown."""
    return _count(replica_set, DESIRED_REPLICAS)


def max_replicas(replica_set: Json) -> int | None:
    """Return the maximum total size when this replica set was last scaled; None if unknown."""
    return _count(replica_set, MAX_REPLICAS)


def _history(history: str, revision: str) -> str:
    """Append a revision; the oldest revisions are dropped beyond the maximum length."""
    if not history:
        return revision
    revisions = [*history.split(","), revision]
    while len(joined := ",".join(revisions)) > MAX_HISTORY_CHARACTERS and len(revisions) > 1:
        revisions.pop(0)
    return joined if len(joined) <= MAX_HISTORY_CHARACTERS else history


def _count(replica_set: Json, annotation: str) -> int | None:
    text = annotations_of(replica_set).get(annotation) or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if 0 <= number <= _MAX_INT32 else None


def _number(text: str) -> int | None:
    try:
        return parse_int64(text)
    except ValueError:
        return None
