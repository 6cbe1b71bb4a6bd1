"""Configuration of admission plugins (--admission-control-config-file).

The file holds the configuration of each plugin, inline or as a path. Webhook plugins may name a kubeconfig, whose users
are named after webhooks. The lookup tries the most specific name first:

    webhook.ns.svc:8443, *.ns.svc:8443      always
    webhook.ns.svc, *.ns.svc                if the port is 443
    *, or the user of the current context   fallback

Webhook and policy plugins may also name a directory of static manifests (staticManifestsDir).
"""

from __future__ import annotations

import base64
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pilothouse.apiserver.admission.manifests import Load, ManifestError, StaticManifests
from pilothouse.apiserver.server.features import MANIFEST_BASED_ADMISSION, FeatureGates
from pilothouse.apiserver.webhook.endpoint import FindCredentials, WebhookCredentials
from pilothouse.client.config.credentials import credential_source
from pilothouse.client.config.kubeconfig import KubeconfigUsers, load_users
from pilothouse.client.config.model import ClientConfig, ConfigError, ImpersonationConfig
from pilothouse.controlplane.serving_place import server_id
from pilothouse.kube.admission.config import StaticAdmission
from pilothouse.kube.admission.manifests import LOAD_POLICIES, LOAD_WEBHOOKS
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.field import FieldError, forbidden, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_KIND = ("apiserver.config.k8s.io/v1", "AdmissionConfiguration")
_KINDS = (_KIND, ("apiserver.k8s.io/v1alpha1", "AdmissionConfiguration"))
_FIELDS = frozenset(("apiVersion", "kind", "plugins"))
_PLUGIN_FIELDS = frozenset(("name", "path", "configuration"))
_UNVERSIONED = {"podNodeSelectorPluginConfig": "PodNodeSelector", "imagePolicy": "ImagePolicyWebhook"}
"""Marker field of an unversioned configuration -> plugin."""


def admission_configurations(file: str) -> Mapping[str, Json]:
    """Return plugin name -> configuration. Raises ValueError."""
    configuration = _read(Path(file))
    for field, plugin in _UNVERSIONED.items():
        if field in configuration and "kind" not in configuration:
            return {plugin: configuration}
    api_version, kind = configuration.get("apiVersion"), configuration.get("kind")
    if (api_version, kind) not in _KINDS:
        reason = f"no kind {quote(str(kind or ''))} is registered for version {quote(str(api_version or ''))}"
        raise ValueError(f"{file}: {reason}; expected {_KIND[1]} of {_KIND[0]}")
    _check_fields(configuration, _FIELDS, file)
    by_plugin: dict[str, Json] = {}
    for index, plugin in enumerate(configuration.get("plugins") or ()):
        where = f"{file}: plugins[{index}]"
        _check_fields(plugin, _PLUGIN_FIELDS, where)
        settings = plugin.get("configuration")
        if settings is None:
            settings = _read(Path(file).parent / plugin["path"]) if plugin.get("path") else {}
        elif not isinstance(settings, dict):
            raise ValueError(f"{where}.configuration is no object")
        by_plugin.setdefault(plugin.get("name") or "", dict(settings))  # the first configuration of a plugin wins
    return by_plugin


def check_plugin_configuration(plugin: str, configuration: Json, kind: str, fields: Iterable[str]) -> None:
    """Raise ValueError if a plugin's configuration has another kind or an unknown field."""
    if (configuration.get("apiVersion"), configuration.get("kind")) != (_KIND[0], kind):
        raise ValueError(f"{plugin}: the configuration must be a {kind} of {_KIND[0]}")
    _check_fields(configuration, frozenset(("apiVersion", "kind", *fields)), plugin)


def _check_fields(value: Any, fields: frozenset[str], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")
    unknown = sorted(set(value) - fields)
    if unknown:
        raise ValueError(f"{where}: strict decoding error: unknown field {quote(unknown[0])}")


def _read(file: Path) -> Json:
    try:
        parsed = parse_yaml(file.read_bytes())
    except YamlError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        reason = f"unable to read admission control configuration from {quote(str(file))} [{error.strerror}]"
        raise ValueError(reason) from None
    if parsed.strict_error:
        raise ValueError(f"{file}: {parsed.strict_error}")
    if not isinstance(parsed.value, dict):
        raise ValueError(f"{file} is no object")
    return parsed.value


T = TypeVar("T")
_FIELD = "staticManifestsDir"


def static_admission(
    configurations: Mapping[str, Json], enabled: Collection[str], features: FeatureGates
) -> StaticAdmission:
    """Load the manifests of every enabled plugin with a staticManifestsDir. Raises ValueError."""
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
        status = Path(directory).stat()
    except OSError as error:
        reason = f"stat {directory}: {(error.strerror or '').lower()}"
        return invalid(_FIELD, directory, f"unable to read: {reason}")
    return None if stat.S_ISDIR(status.st_mode) else invalid(_FIELD, directory, "must be a directory")


def _loaded(kind: str, loaders: Mapping[str, Load[T]], directories: Mapping[str, str]) -> dict[str, StaticManifests[T]]:
    by_plugin: dict[str, StaticManifests[T]] = {}
    for plugin, load in loaders.items():
        if directory := directories.get(plugin):
            try:
                by_plugin[plugin] = StaticManifests(directory, load, plugin=plugin, server_id=server_id())
            except ManifestError as error:
                where = f"failed to load static {kind} manifests from {quote(directory)}"
                raise ValueError(f"failed to initialize admission plugin {quote(plugin)}: {where}: {error}") from None
    return by_plugin


_PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
_WEBHOOK_KIND = "WebhookAdmissionConfiguration"
_WEBHOOK_FIELDS = ("kubeConfigFile", "staticManifestsDir")


def webhook_credentials(configurations: Mapping[str, Json]) -> dict[str, FindCredentials]:
    """Return the credential lookup of each plugin with a kubeconfig. Raises ValueError."""
    by_plugin: dict[str, FindCredentials] = {}
    for plugin in _PLUGINS:
        configuration = configurations.get(plugin)
        if not configuration:
            continue
        check_plugin_configuration(plugin, configuration, _WEBHOOK_KIND, _WEBHOOK_FIELDS)
        file: str = configuration.get("kubeConfigFile") or ""
        if file and not file.startswith("/"):
            raise ValueError(f"{plugin}: kubeConfigFile: Invalid value: {quote(file)}: must be an absolute file path")
        if file:
            try:
                users = load_users(file)
                credentials = {name: UserCredentials(config) for name, config in users.by_name.items()}
            except (ConfigError, OSError) as error:
                raise ValueError(f"{plugin}: {error}") from None
            by_plugin[plugin] = partial(_find, users, credentials)
    return by_plugin


def _find(
    users: KubeconfigUsers, credentials: Mapping[str, WebhookCredentials], target: str
) -> WebhookCredentials | None:
    names = (*_names(target), "*", users.current)
    return next((credentials[name] for name in names if name in credentials), None)


def _names(target: str) -> Iterator[str]:
    """Yield the user names to try for a webhook, most specific first."""
    host, _, port = target.rpartition(":")
    for name in (target, host) if port == "443" else (target,):
        yield name
        steps = name.split(".")
        yield from ("*." + ".".join(steps[start:]) for start in range(1, len(steps)))


class UserCredentials:
    def __init__(self, config: ClientConfig) -> None:
        """Raises ConfigError, OSError."""
        if config.exec is not None:
            raise ConfigError("users of webhooks cannot get their credentials from a program")
        self._config = config
        self._source = credential_source(config)
        tls = config.tls
        certificate = tls.cert_data or (tls.cert_file.read_bytes() if tls.cert_file else b"")
        key = tls.key_data or (tls.key_file.read_bytes() if tls.key_file else b"")
        self.client_certificate = certificate + b"\n" + key if certificate else b""

    async def headers(self) -> Mapping[str, str]:
        config = self._config
        headers = dict(_impersonation(config.impersonate))
        token = (await self._source.get()).token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        elif config.username or config.password:
            pair = f"{config.username}:{config.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return headers


def _impersonation(impersonate: ImpersonationConfig) -> Iterator[tuple[str, str]]:
    """Yield the impersonation headers. Values share one header, comma-separated: webhooks parse plain HTTP, not the
    repeated headers of the API server."""
    if impersonate.user:
        yield "Impersonate-User", impersonate.user
        if impersonate.uid:
            yield "Impersonate-Uid", impersonate.uid
        if impersonate.groups:
            yield "Impersonate-Group", ", ".join(impersonate.groups)
        for key, value in impersonate.extra:
            yield f"Impersonate-Extra-{key}", value
