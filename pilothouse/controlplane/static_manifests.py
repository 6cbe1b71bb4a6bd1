"""staticManifestsDir: admission webhooks and policies that the server reads from its own files."""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar

from pilothouse.apiserver.admission.manifest.files import ManifestError
from pilothouse.apiserver.admission.manifest.source import Load, StaticManifests
from pilothouse.apiserver.server.features import MANIFEST_BASED_ADMISSION, FeatureGates
from pilothouse.controlplane.admission_configuration import check_plugin_configuration
from pilothouse.controlplane.server_identity import server_id
from pilothouse.kube.admission.config import StaticAdmission
from pilothouse.kube.admission.manifests.policies import LOAD_POLICIES
from pilothouse.kube.admission.manifests.webhooks import LOAD_WEBHOOKS
from pilothouse.machinery.field import FieldError, forbidden, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

T = TypeVar("T")
_FIELD = "staticManifestsDir"


def static_admission(
    configurations: Mapping[str, Json], enabled: Collection[str], features: FeatureGates
) -> StaticAdmission:
    """Load the manifests of all enabled plug-ins whose configurations name a directory. Raises ValueError."""
    directories: dict[str, str] = {}
    for plugin, configuration in configurations.items():
        if plugin in enabled and plugin in {*LOAD_POLICIES, *LOAD_WEBHOOKS} and configuration:
            if plugin in LOAD_POLICIES:
                check_plugin_configuration(plugin, configuration, f"{plugin}Configuration", (_FIELD,))
            directory: str = configuration.get(_FIELD) or ""
            if directory and (problem := _problem(directory, features)):
                raise ValueError(f"couldn't init admission plugin {quote(plugin)}: {problem}")
            directories[plugin] = directory
    return StaticAdmission(
        _loaded("webhook", LOAD_WEBHOOKS, directories), _loaded("policy", LOAD_POLICIES, directories)
    )


def _problem(directory: str, features: FeatureGates) -> FieldError | None:
    if not features.enabled(MANIFEST_BASED_ADMISSION):
        return forbidden(_FIELD, f"{_FIELD} requires the {MANIFEST_BASED_ADMISSION} feature gate to be enabled")
    if not directory.startswith("/"):
        return invalid(_FIELD, directory, "must be an absolute file path")
    try:
        found = Path(directory).stat()
    except OSError as error:
        why = f"stat {directory}: {(error.strerror or '').lower()}"
        return invalid(_FIELD, directory, f"unable to read: {why}")
    return None if stat.S_ISDIR(found.st_mode) else invalid(_FIELD, directory, "must be a directory")


def _loaded(what: str, loaders: Mapping[str, Load[T]], directories: Mapping[str, str]) -> dict[str, StaticManifests[T]]:
    found: dict[str, StaticManifests[T]] = {}
    for plugin, load in loaders.items():
        if directory := directories.get(plugin):
            try:
                found[plugin] = StaticManifests(directory, load, plugin=plugin, server_id=server_id())
            except ManifestError as error:
                where = f"failed to load static {what} manifests from {quote(directory)}"
                raise ValueError(f"failed to initialize admission plugin {quote(plugin)}: {where}: {error}") from None
    return found
