"""The horizontal pod autoscaler: kube-controller-manager's flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import DURATION, FLOAT, INT, flag


@dataclass(frozen=True)
class AutoscalerOptions:
    title: ClassVar[str] = "horizontal pod autoscaler"

    concurrent_syncs: int = flag(
        "concurrent-horizontal-pod-autoscaler-syncs", INT, 5, "How many autoscalers are worked on at once."
    )
    sync_period: float = flag(
        "horizontal-pod-autoscaler-sync-period", DURATION, 15.0, "How often each autoscaler looks at its metrics."
    )
    downscale_stabilization: float = flag(
        "horizontal-pod-autoscaler-downscale-stabilization",
        DURATION,
        300.0,
        "For how long nothing is scaled below what was recommended, where an autoscaler does not say itself.",
    )
    tolerance: float = flag(
        "horizontal-pod-autoscaler-tolerance",
        FLOAT,
        0.1,
        "By how much use and target must differ, as a ratio, before anything is scaled.",
    )
    cpu_initialization_period: float = flag(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        DURATION,
        300.0,
        "For how long after a pod's start its use of processor time counts only while it is ready.",
    )
    initial_readiness_delay: float = flag(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        DURATION,
        30.0,
        "A pod that became unready within so long after its start counts as never having been ready.",
    )

    def validate(self) -> Iterator[str]:
        if self.concurrent_syncs < 1:
            name = "concurrent-horizontal-pod-autoscaler-syncs"
            yield f"{name} must be greater than 0, but got {self.concurrent_syncs}"
