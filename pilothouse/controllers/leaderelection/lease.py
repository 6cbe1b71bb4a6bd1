"""The lease of an election: whether a new holder is needed, and how to set it."""

from __future__ import annotations

import copy
from datetime import datetime

from pilothouse.controllers.leaderelection.candidates import moment_of
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.times import format_micro_time

DURATION = 5
"""Lease duration in seconds after an election."""


def holder_of(lease: Json) -> str:
    return text(lease, "spec", "holderIdentity")


def is_expired(lease: Json, now: datetime) -> bool:
    renewed, duration = moment_of(lease, "renewTime"), part(lease, "spec").get("leaseDurationSeconds")
    return renewed is None or duration is None or (now - renewed).total_seconds() > duration


def new_lease(namespace: str, name: str, strategy: str, holder: str, now: datetime) -> Json:
    """Return a new lease; without a holder, another controller elects one."""
    spec: Json = {"strategy": strategy, "leaseDurationSeconds": DURATION, "renewTime": format_micro_time(now)}
    if holder:
        spec["holderIdentity"] = holder
    meta = {"namespace": namespace, "name": name}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}


def with_elected(lease: Json, strategy: str, holder: str, now: datetime) -> Json:
    """Return the lease with the elected holder. If the current holder still renews, only preferredHolder is set."""
    elected = copy.deepcopy(lease)
    spec = elected.setdefault("spec", {})
    spec["strategy"] = strategy
    if not holder or holder == holder_of(lease):
        return elected
    if not holder_of(lease) or is_expired(lease, now):
        for field in ("preferredHolder", "acquireTime"):
            spec.pop(field, None)
        renewed = {"renewTime": format_micro_time(now), "leaseDurationSeconds": DURATION}
        spec.update(holderIdentity=holder, **renewed)
    else:
        spec["preferredHolder"] = holder
    return elected
