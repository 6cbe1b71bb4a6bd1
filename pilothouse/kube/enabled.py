"""What --runtime-config leaves of a group."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.server.resource_config import ResourceConfig


def only_enabled(group: APIGroup, config: ResourceConfig) -> APIGroup:
    """The group without the versions and resources that are turned off."""
    versions = [_only_enabled_resources(version, config) for version in group.versions]
    return replace(group, versions=[version for version in versions if version.resources])


def _only_enabled_resources(version: APIVersion, config: ResourceConfig) -> APIVersion:
    group_version = version.group_version
    resources = [r for r in version.resources if config.resource_enabled(group_version.resource(r.names.plural))]
    return APIVersion(group_version, resources)
