"""How long requests took, by verb and scope, as Kubernetes' service level objectives divide them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    OBJECT = "one object"
    NAMESPACE = "namespace"
    NODE = "cluster, of one node"
    CLUSTER = "cluster"


OBJECTIVES = {Scope.OBJECT: 1.0, Scope.NAMESPACE: 5.0, Scope.NODE: 30.0, Scope.CLUSTER: 30.0}
"""Seconds that 99 of 100 requests may take: https://github.com/kubernetes/community/tree/main/sig-scalability/slos"""
Kind = tuple[str, str, Scope]
"""A verb, a resource and a scope."""


@dataclass
class Recorder:
    """Of one phase."""

    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    """From sending a binding until its event was at the kubelet."""
    failures: Counter[str] = field(default_factory=Counter)
    events: int = 0
    renewed_watches: int = 0

    def took(self, kind: Kind, seconds: float) -> None:
        self.seconds.setdefault(kind, []).append(seconds)

    @property
    def requests(self) -> int:
        return sum(map(len, self.seconds.values())) + self.renewed_watches


def percentile(values: list[float], share: float) -> float:
    """The nearest rank; not a number where there is nothing."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan
