"""Claims as messages about immutable fields print them."""

from __future__ import annotations

from typing import Any

from pilothouse.kube.validation.internal_structs import ANY, NUMBER, TEXT, pointer, slice_of, struct
from pilothouse.machinery.schema.printing import object_meta_in_messages

_opaque = pointer(struct(Driver=TEXT, Parameters=ANY))
_selectors = slice_of(lambda value: {"CEL": pointer(struct(Expression=TEXT))(value.get("cel"))})
_tolerations = slice_of(struct(Key=TEXT, Operator=TEXT, Value=TEXT, Effect=TEXT, TolerationSeconds=ANY))
_capacity = pointer(struct(Requests=ANY))
_node_selector = pointer(
    struct(
        NodeSelectorTerms=slice_of(
            struct(
                MatchExpressions=slice_of(struct(Key=TEXT, Operator=TEXT, Values=ANY)),
                MatchFields=slice_of(struct(Key=TEXT, Operator=TEXT, Values=ANY)),
            )
        )
    )
)

printed_claim_spec = struct(
    Devices=struct(
        Requests=slice_of(
            struct(
                Name=TEXT,
                Exactly=pointer(
                    struct(
                        DeviceClassName=TEXT,
                        Selectors=_selectors,
                        AllocationMode=TEXT,
                        Count=NUMBER,
                        AdminAccess=ANY,
                        Tolerations=_tolerations,
                        Capacity=_capacity,
                    )
                ),
                FirstAvailable=slice_of(
                    struct(
                        Name=TEXT,
                        DeviceClassName=TEXT,
                        Selectors=_selectors,
                        AllocationMode=TEXT,
                        Count=NUMBER,
                        Tolerations=_tolerations,
                        Capacity=_capacity,
                    )
                ),
            )
        ),
        Constraints=slice_of(struct(Requests=ANY, MatchAttribute=ANY, DistinctAttribute=ANY)),
        Config=slice_of(struct(Requests=ANY, Opaque=_opaque)),
    )
)

printed_allocation = pointer(
    struct(
        Devices=struct(
            Results=slice_of(
                struct(
                    Request=TEXT,
                    Driver=TEXT,
                    Pool=TEXT,
                    Device=TEXT,
                    AdminAccess=ANY,
                    Tolerations=_tolerations,
                    BindingConditions=ANY,
                    BindingFailureConditions=ANY,
                    ShareID=lambda value: value,
                    ConsumedCapacity=ANY,
                )
            ),
            Config=slice_of(struct(Source=TEXT, Requests=ANY, Opaque=_opaque)),
        ),
        NodeSelector=_node_selector,
        AllocationTimestamp=ANY,
    )
)


def printed_template_spec(spec: Any) -> Any:
    """Format the template: metadata fields beside the spec."""
    return {**object_meta_in_messages(spec.get("metadata") or {}), "Spec": printed_claim_spec(spec.get("spec"))}
