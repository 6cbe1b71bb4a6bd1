"""Resources in versions besides the one they are stored in. Most differ from it in nothing but their name.

Those that are not stable are off until --runtime-config turns them on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.kube.served import VersionConversion
from pilothouse.machinery.names import GroupVersion


def named(resources: Iterable[ServedResource], *plurals: str) -> list[ServedResource]:
    """Return those of the resources that have one of the names, with their subresources."""
    return [resource for resource in resources if resource.names.plural in plurals]


def in_version(
    version: GroupVersion,
    stored: Iterable[ServedResource],
    *,
    deprecation: Deprecation | None = None,
    conversions: Mapping[str, VersionConversion] | None = None,
) -> list[ServedResource]:
    """Return the resources, which are as they are stored, as another version serves them.

    `conversions` are by plural; a resource without one has the same fields in both versions.
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
