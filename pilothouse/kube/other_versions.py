"""Resources in versions other than their storage version.

--runtime-config enables alpha and beta versions, which are off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types


@dataclass(frozen=True, slots=True)
class VersionConversion:
    """Conversion between a served version and the storage version. `default` runs before `to_stored`."""

    kind: GroupVersionKind
    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]
    default: Callable[[Json], None]


def in_version(
    version: GroupVersion,
    stored: Iterable[ServedResource],
    *,
    deprecation: Deprecation | None = None,
    conversions: Mapping[str, VersionConversion] | None = None,
) -> list[ServedResource]:
    """Return resources of the storage version as `version` serves them.

    `conversions` maps plurals to conversions. Other resources have the same fields in both versions.
    """
    return [
        _converted(resource, (conversions or {}).get(resource.names.plural) or _renamed(resource, version), deprecation)
        for resource in stored
    ]


def _converted(
    resource: ServedResource, conversion: VersionConversion, deprecation: Deprecation | None
) -> ServedResource:
    return replace(
        resource,
        kind=conversion.kind,
        decoder=TypedDecoder(conversion.kind),
        default=conversion.default,
        to_stored=conversion.to_stored,
        from_stored=conversion.from_stored,
        warning=deprecation.warning(conversion.kind) if deprecation else "",
    )


def _renamed(resource: ServedResource, version: GroupVersion) -> VersionConversion:
    return VersionConversion(
        kind=version.kind(resource.kind.kind),
        to_stored=lambda obj: {**obj, "apiVersion": resource.kind.api_version},
        from_stored=lambda obj: {**obj, "apiVersion": str(version)},
        default=resource.default,
    )


def fitted(kind: GroupVersionKind, obj: Json) -> Json:
    """Return the object in the canonical form of the kind, which decides whether empty fields are written."""
    resource_type = types.of(kind)
    assert resource_type is not None, f"{kind} is no built-in kind"
    return resource_type.fit(obj)
