"""The lease that an election is about: whether it needs a new holder, and how it gets one."""

from __future__ import annotations

import copy
from datetime import datetime

from pilothouse.controllers.leaderelection.candidates import moment_of
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.times import format_micro_time

DURATION = 5
"""Seconds for which whoever was elected has the lease before it must have renewed it."""


def holder_of(lease: Json) -> str:
    return text(lease, "spec", "holderIdentity")


def is_expired(lease: Json, now: datetime) -> bool:
    renewed, duration = moment_of(lease, "renewTime"), part(lease, "spec").get("leaseDurationSeconds")
    return renewed is None or duration is None or (now - renewed).total_seconds() > duration


def new_lease(namespace: str, name: str, strategy: str, holder: str, now: datetime) -> Json:
    """Without a holder, some other controller is to choose one."""
    spec: Json = {"strategy": strategy, "leaseDurationSeconds": DURATION, "renewTime": format_micro_time(now)}
    if holder:
        spec["holderIdentity"] = holder
    meta = {"namespace": namespace, "name": name}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}


def with_elected(lease: Json, strategy: str, holder: str, now: datetime) -> Json:
    """The lease of whoever was elected. A holder that still renews it is only told whom it is to make room for."""
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
