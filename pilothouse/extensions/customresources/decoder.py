"""Decoding of custom resources by the schema of a version."""

from __future__ import annotations

from functools import cached_property

from pilothouse.apiserver.endpoints.unstructured import UnstructuredDecoder
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.object_type import DecodeError


class CustomResourceDecoder(UnstructuredDecoder):
    """Decodes objects for one version. As upstream, objects of another version are decoded by that version's schema."""

    def __init__(self, resource: CustomResource, version: str) -> None:
        super().__init__(resource.kind(version))
        self.resource = resource

    @cached_property
    def atom(self) -> Atom:
        return self.resource.schemas.of(self.kind.version).atom

    @property
    def fits_atom(self) -> bool:
        """Always False: validation, which follows admission, reports wrong types."""
        return False

    def knows(self, kind: GroupVersionKind) -> bool:
        return kind.group == self.kind.group and kind.version in self.resource.versions

    def fit(self, obj: Json, named: GroupVersionKind) -> list[str]:
        if named.group_kind != self.kind.group_kind:
            return []  # validation rejects it with another message
        try:
            return self.resource.schemas.of(named.version).prune(obj)
        except MalformedEmbeddedResource as error:
            raise DecodeError(str(error)) from None
