"""Settings of the horizontal pod autoscaler."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerConfig:
    concurrent_syncs: int = 5
    sync_period: float = 15.0
    downscale_stabilization: float = 300.0
    """Default downscale stabilization window in seconds."""
    tolerance: float = 0.1
    """Minimum relative deviation from the target before scaling."""
    cpu_initialization_period: float = 300.0
    """Seconds after a pod's start in which CPU usage counts only while the pod is ready."""
    initial_readiness_delay: float = 30.0
    """Seconds after a pod's start in which a transition to unready means that the pod was never ready."""
    configurable_tolerance: bool = True
    scale_to_zero: bool = False
    """Feature gates HPAConfigurableTolerance and HPAScaleToZero."""
