"""ControllerRevisions: immutable pieces of a workload's history."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, invalid, required, root
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, number
from pilothouse.machinery.schema.raw_json import compact, raw_text
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field


class ControllerRevisionStrategy(KubeStrategy):
    def validate(self, obj: Json) -> Errors:
        yield from self._validate_revision(obj)
        if obj.get("data") is None:
            yield required(root("data"), "data is mandatory")
        elif not isinstance(obj["data"], dict):
            yield required(root("data"), "data must be a valid JSON object")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self._validate_revision(obj)
        # Raw bytes: even key order and white space are immutable.
        if (data := raw_text(obj.get("data"))) != raw_text(old.get("data")):
            yield invalid(root("data"), orjson.Fragment(compact(data)), FIELD_IMMUTABLE)

    def _validate_revision(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_nonnegative_field(number(obj, "revision"), root("revision"))


def _controller(obj: Json) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = GroupVersion.parse(owner.get("apiVersion") or "").group
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return "<none>"


CONTROLLER_REVISIONS = Resource(
    names=Names("controllerrevisions", kind="ControllerRevision"),
    strategy=ControllerRevisionStrategy(),
    group="apps",
    columns=[
        NAME,
        Column("Controller", _controller, description="Controller of the object"),
        Column(
            "Revision",
            lambda obj: number(obj, "revision"),
            documented=("io.k8s.api.apps.v1.ControllerRevision", "revision"),
        ),
        AGE,
    ],
)
