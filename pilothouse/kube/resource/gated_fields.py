"""Feature-gated fields of devices, claims and classes."""

from __future__ import annotations

from pilothouse.kube.strategy import gated

_REQUESTS = ("devices.requests[].exactly", "devices.requests[].firstAvailable[]")
_LISTS = ("ints", "bools", "strings", "versions")
_BINDING = ("bindingConditions", "bindingFailureConditions")

CLASS_SPEC_FIELDS = (gated("DRAExtendedResource", "extendedResourceName"),)

CLAIM_SPEC_FIELDS = (
    gated("DRAPrioritizedList", "devices.requests[].firstAvailable"),
    gated("DRADeviceTaints", *(f"{request}.tolerations" for request in _REQUESTS)),
    gated(
        "DRAConsumableCapacity",
        "devices.constraints[].distinctAttribute",
        *(f"{request}.capacity" for request in _REQUESTS),
    ),
    gated("DRADerivedAttributes", *(f"{request}.derivedAttributes" for request in _REQUESTS)),
)

CLAIM_STATUS_FIELDS = (
    gated("DRAResourceClaimDeviceStatus", "devices"),
    gated(
        "DRAConsumableCapacity",
        *(f"allocation.devices.results[].{name}" for name in ("shareID", "consumedCapacity")),
        "devices[].shareID",
    ),
    gated("DRAOptionalNodeOperations", "allocation.devices.results[].skipNodeOperations"),
    gated("DRADeviceBindingConditions", *(f"allocation.devices.results[].{name}" for name in _BINDING)),
)

SLICE_SPEC_FIELDS = (
    gated("DRADeviceTaints", "devices[].taints"),
    gated(
        "DRAPartitionableDevices",
        "sharedCounters",
        "perDeviceNodeSelection",
        *(f"devices[].{name}" for name in ("consumesCounters", "nodeName", "nodeSelector", "allNodes")),
    ),
    gated("DRADeviceBindingConditions", *(f"devices[].{name}" for name in (*_BINDING, "bindsToNode"))),
    gated("DRAConsumableCapacity", "devices[].allowMultipleAllocations", "devices[].capacity{}.requestPolicy"),
    gated("DRADeviceCompatibilityGroups", "devices[].consumesCounters[].compatibilityGroups"),
    gated("DRAPartitionableDevicesType", "partitionTypeAttribute"),
    gated("DRAOptionalNodeOperations", "skipNodeOperations"),
    gated(
        "DRANodeAllocatableResources",
        *(f"devices[].{name}" for name in ("nodeAllocatableResourceMappings", "nodeAllocatableResources")),
    ),
    gated("DRAListTypeAttributes", *(f"devices[].attributes{{}}.{name}" for name in _LISTS)),
)
