"""LeaseCandidates: candidates of coordinated leader election, with their versions."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.coordination.leases import GROUP, OLDEST_EMULATION_VERSION, validate_strategy
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import follow, non_empty
from pilothouse.machinery import versions
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.names import is_config_map_key

_ZERO = ("0", "0", "0", "")
_SPEC = "io.k8s.api.coordination.v1alpha2.LeaseCandidateSpec"


class LeaseCandidateStrategy(KubeStrategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return is_config_map_key(name)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(part(obj, "spec"), root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(part(obj, "spec"), root("spec"))
        names = (text(obj, "spec", "leaseName"), text(old, "spec", "leaseName"))
        yield from validate_immutable_field(*names, root("spec", "leaseName"))


def _validate_spec(spec: Json, path: Path) -> Errors:
    yield from non_empty(text(spec, "leaseName"), path.child("leaseName"))
    emulated, binary = text(spec, "emulationVersion"), text(spec, "binaryVersion")
    if emulated:
        yield from follow(_is_version, emulated, path.child("emulationVersion"))
    yield from non_empty(binary, where := path.child("binaryVersion"))
    if binary:
        yield from follow(_is_version, binary, where)
    if binary and emulated and _order(binary) < _order(emulated):
        yield invalid(where, binary, "must be greater than or equal to `emulationVersion`")
    strategy = text(spec, "strategy")
    yield from non_empty(strategy, path.child("strategy"))
    if strategy == OLDEST_EMULATION_VERSION and _order(text(spec, "emulationVersion")) == versions.ordinal(*_ZERO):
        reason = "must be specified when `strategy` is 'OldestEmulationVersion'"
        yield required(path.child("emulationVersion"), reason)
    if strategy:
        yield from validate_strategy(strategy, path.child("strategy"))


def _is_version(version: str) -> list[str]:
    return [] if versions.parts_of(version) else ["must be a valid semantic version"]


def _order(version: str) -> tuple[object, ...]:
    """Sort key of a version; unparsable versions sort first."""
    return versions.ordinal(*(versions.parts_of(version) or _ZERO))


LEASE_CANDIDATES = Resource(
    names=Names("leasecandidates", kind="LeaseCandidate"),
    strategy=LeaseCandidateStrategy(),
    group=GROUP,
    version="v1beta1",
    columns=[
        NAME,
        Column("LeaseName", lambda obj: text(obj, "spec", "leaseName"), documented=(_SPEC, "leaseName")),
        Column("BinaryVersion", lambda obj: text(obj, "spec", "binaryVersion")),
        Column("EmulationVersion", lambda obj: text(obj, "spec", "emulationVersion")),
        AGE,
    ],
)
