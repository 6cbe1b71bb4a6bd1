"""Leases. PUT may create a lease; updates require a resourceVersion."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import COORDINATED_LEADER_ELECTION, FeatureGates
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served
from pilothouse.kube.validation.fields import follow, nonnegative, one_of
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, root
from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.validation.names import is_qualified_name

GROUP = "coordination.k8s.io"
OLDEST_EMULATION_VERSION = "OldestEmulationVersion"


class LeaseStrategy(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def __init__(self, *, coordinated: bool = False) -> None:
        """`coordinated`: whether the fields of coordinated leader election are kept."""
        self._coordinated = coordinated

    def prepare_for_create(self, obj: Json) -> None:
        if not self._coordinated:
            _drop_coordination(obj, {})

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if not self._coordinated:
            _drop_coordination(obj, part(old, "spec"))

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(obj.get("spec") or {})

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(obj.get("spec") or {})


def _drop_coordination(obj: Json, stored: Json) -> None:
    """Drop the fields of coordinated leader election, unless the stored lease uses them."""
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
    strategy = spec.get("strategy")
    if strategy is not None:
        yield from validate_strategy(strategy, path.child("strategy"))
    if spec.get("preferredHolder") and not strategy:
        yield forbidden(path.child("preferredHolder"), "may only be specified if `strategy` is defined")


def validate_strategy(strategy: str, path: Path) -> Errors:
    """Validate the strategy. Paths repeat `strategy`, as upstream's paths do."""
    path = path.child("strategy")
    if "/" in strategy:
        yield from follow(is_qualified_name, strategy, path)
    else:
        yield from one_of(strategy, path, (OLDEST_EMULATION_VERSION,))


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

_COORDINATED_LEASES = replace(LEASES, strategy=LeaseStrategy(coordinated=True))


def leases_with(features: FeatureGates) -> Resource:
    """Return the resource for the feature gates."""
    return _COORDINATED_LEASES if features.enabled(COORDINATED_LEADER_ELECTION) else LEASES


def served_leases(registries: Registries) -> list[ServedResource]:
    return [served(registries.open(leases_with(registries.features)))]
