"""The settings of the horizontal pod autoscaler."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerConfig:
    concurrent_syncs: int = 5
    sync_period: float = 15.0
    downscale_stabilization: float = 300.0
    """For so long nothing is scaled below what was recommended, where the autoscaler itself does not say."""
    tolerance: float = 0.1
    """By how much use and target must differ, as a ratio, before anything is scaled."""
    cpu_initialization_period: float = 300.0
    """For so long after a pod's start, what it uses counts only while it is ready."""
    initial_readiness_delay: float = 30.0
    """A pod that has become unready within so long after its start has never been ready."""
    configurable_tolerance: bool = True
    scale_to_zero: bool = False
    """The feature gates HPAConfigurableTolerance and HPAScaleToZero."""
