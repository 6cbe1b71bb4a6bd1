"""The credentials of a WebhookAdmissionConfiguration: a kubeconfig whose users are named after the webhooks that they
are for.

webhook.ns.svc:8443, *.ns.svc:8443      the first that there is, most specific first
webhook.ns.svc, *.ns.svc                where the port is 443
*, or the user of the current context   for all others
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import partial

from pilothouse.apiserver.webhook.credentials import FindCredentials, WebhookCredentials
from pilothouse.client.config.credentials import credential_source
from pilothouse.client.config.kubeconfig import KubeconfigUsers, load_users
from pilothouse.client.config.model import ClientConfig, ConfigError, ImpersonationConfig
from pilothouse.controlplane.admission_configuration import check_plugin_configuration
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
_KIND = "WebhookAdmissionConfiguration"
_FIELDS = ("kubeConfigFile", "staticManifestsDir")


def webhook_credentials(configurations: Mapping[str, Json]) -> dict[str, FindCredentials]:
    """Return the credentials by the names of the plug-ins that have a configuration. Raises ValueError."""
    found: dict[str, FindCredentials] = {}
    for plugin in _PLUGINS:
        file = _kubeconfig(plugin, configurations.get(plugin) or {})
        if file:
            try:
                users = load_users(file)
                credentials = {name: UserCredentials(config) for name, config in users.by_name.items()}
            except (ConfigError, OSError) as error:
                raise ValueError(f"{plugin}: {error}") from None
            found[plugin] = partial(_find, users, credentials)
    return found


def _kubeconfig(plugin: str, configuration: Json) -> str:
    if not configuration:
        return ""
    check_plugin_configuration(plugin, configuration, _KIND, _FIELDS)
    file: str = configuration.get("kubeConfigFile") or ""
    if file and not file.startswith("/"):
        raise ValueError(f"{plugin}: kubeConfigFile: Invalid value: {quote(file)}: must be an absolute file path")
    return file


def _find(
    users: KubeconfigUsers, credentials: Mapping[str, WebhookCredentials], target: str
) -> WebhookCredentials | None:
    names = (*_names(target), "*", users.current)
    return next((credentials[name] for name in names if name in credentials), None)


def _names(target: str) -> Iterator[str]:
    """Under which the users for a webhook are looked up."""
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
    """Return the impersonation headers. Several values stand in one header: a webhook is no API server, and reads them
    as HTTP has it.
    """
    if impersonate.user:
        yield "Impersonate-User", impersonate.user
        if impersonate.uid:
            yield "Impersonate-Uid", impersonate.uid
        if impersonate.groups:
            yield "Impersonate-Group", ", ".join(impersonate.groups)
        for key, value in impersonate.extra:
            yield f"Impersonate-Extra-{key}", value
