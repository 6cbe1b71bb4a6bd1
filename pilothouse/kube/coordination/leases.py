"""Leases. They may be created by PUT, and are never replaced without naming a version."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.nested_fields import part
from pilothouse.machinery.objects import Json

GROUP = "coordination.k8s.io"


class LeaseStrategy(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: Json) -> None:
        _drop_coordination(obj, {})

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        _drop_coordination(obj, part(old, "spec"))

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(obj.get("spec") or {})

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(obj.get("spec") or {})


def _drop_coordination(obj: Json, stored: Json) -> None:
    """Coordinated leader election is off in v1.36: its fields are kept only where they were stored before."""
    for field in ("strategy", "preferredHolder"):
        if stored.get(field) is None:
            part(obj, "spec").pop(field, None)


def _validate_spec(spec: Json) -> Errors:
    path = root("spec")
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid(path.child("leaseDurationSeconds"), duration, "must be greater than 0")
    if transitions is not None:
        yield from nonnegative(transitions, path.child("leaseTransitions"))


LEASES = Resource(
    names=Names("leases", kind="Lease"),
    strategy=LeaseStrategy(),
    group=GROUP,
    columns=[
        NAME,
        Column(
            "Holder",
            lambda obj: (obj.get("spec") or {}).get("holderIdentity") or "",
            documented=("io.k8s.api.coordination.v1.LeaseSpec", "holderIdentity"),
        ),
        AGE,
    ],
)
