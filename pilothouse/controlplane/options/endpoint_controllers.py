"""Controllers of endpoints: kube-controller-manager's flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import DURATION, INT, flag

_SYNCS, _PER_SLICE = 50, 1000


@dataclass(frozen=True)
class EndpointControllerOptions:
    title: ClassVar[str] = "endpoint controllers"

    concurrent_endpoint_syncs: int = flag(
        "concurrent-endpoint-syncs", INT, 5, "How many Endpoints are brought up to date at once."
    )
    endpoint_updates_batch_period: float = flag(
        "endpoint-updates-batch-period", DURATION, 0.0, "How long a change of a pod waits for more."
    )
    concurrent_service_endpoint_syncs: int = flag(
        "concurrent-service-endpoint-syncs", INT, 5, "For how many services slices are brought up to date at once."
    )
    endpointslice_updates_batch_period: float = flag(
        "endpointslice-updates-batch-period",
        DURATION,
        0.0,
        "How long a change of a pod waits for more.",
    )
    max_endpoints_per_slice: int = flag("max-endpoints-per-slice", INT, 100, "How many endpoints go into one slice.")
    mirroring_concurrent_service_endpoint_syncs: int = flag(
        "mirroring-concurrent-service-endpoint-syncs", INT, 5, "How many Endpoints are mirrored to slices at once."
    )
    mirroring_endpointslice_updates_batch_period: float = flag(
        "mirroring-endpointslice-updates-batch-period",
        DURATION,
        0.0,
        "How long a change of a mirrored slice waits for more.",
    )
    mirroring_max_endpoints_per_subset: int = flag(
        "mirroring-max-endpoints-per-subset", INT, 1000, "How many addresses of a subset are mirrored to a slice."
    )

    def validate(self) -> Iterator[str]:
        if self.concurrent_endpoint_syncs < 1:
            yield f"concurrent-endpoint-syncs must be greater than 0, but got {self.concurrent_endpoint_syncs}"
        for name, value, most in (
            ("concurrent-service-endpoint-syncs", self.concurrent_service_endpoint_syncs, _SYNCS),
            ("max-endpoints-per-slice", self.max_endpoints_per_slice, _PER_SLICE),
            ("mirroring-concurrent-service-endpoint-syncs", self.mirroring_concurrent_service_endpoint_syncs, _SYNCS),
            ("mirroring-max-endpoints-per-subset", self.mirroring_max_endpoints_per_subset, _PER_SLICE),
        ):
            if value < 1:
                yield f"{name} must not be less than 1, but got {value}"
            elif value > most:
                yield f"{name} must not be more than {most}, but got {value}"
