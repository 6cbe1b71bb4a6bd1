"""Webhooks of a test: their address and certificate, and configurations that refer to them."""

from __future__ import annotations

import base64
import copy
import socket
from collections.abc import Iterator
from pathlib import Path

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.testing.pytest_plugin.template import Manifest

_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """Address of the test's webhooks, and the certificate files to serve them with."""

    host: str
    port: int
    certificate: Path
    key: Path
    ca: Path

    @property
    def url(self) -> str:
        return f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def point(self, manifest: Manifest) -> Manifest:
        """Return the manifest with the URLs and CAs of its webhooks replaced. Paths are kept."""
        obj = copy.deepcopy(manifest.obj)
        for client_config in _client_configs(obj):
            path = (client_config.pop("service", None) or {}).get("path") or _path_of(client_config.get("url") or "")
            client_config["url"] = f"{self.url}/{path.lstrip('/')}"
            client_config["caBundle"] = base64.b64encode(self.ca.read_bytes()).decode()
        return Manifest(obj, manifest.origin)


def new_webhook_address(host: str, port: int, folder: Path) -> WebhookAddress:
    """Issue a certificate for the host in the folder, signed by a new CA. Port 0 selects a free port."""
    from pilothouse.controlplane.certificates.ensure import serving_names
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    folder.mkdir(parents=True, exist_ok=True)
    ca, certificate, key = folder / "ca.crt", folder / "tls.crt", folder / "tls.key"
    names = serving_names(bind_address=host, hostnames=(), service_ip="")
    authority = keep_authority("pilothouse-webhooks", ca, folder / "ca.key")
    keep_certificate(Profile("webhooks", names=names), authority, certificate, key)
    return WebhookAddress(host, port or _free_port(host), certificate, key, ca)


def _client_configs(obj: Json) -> Iterator[Json]:
    if obj["kind"] in _CONFIGURATIONS:
        for webhook in obj.get("webhooks") or ():
            yield webhook.setdefault("clientConfig", {})
    conversion = obj.get("spec", {}).get("conversion") or {}
    if obj["kind"] == "CustomResourceDefinition" and conversion.get("strategy") == "Webhook":
        yield conversion.setdefault("webhook", {}).setdefault("clientConfig", {})


def _path_of(url: str) -> str:
    return url.split("/", 3)[3] if url.count("/") > 2 else ""


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
