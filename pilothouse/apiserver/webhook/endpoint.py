"""The endpoint that a WebhookClientConfig points to."""

from __future__ import annotations

import base64
import posixpath
import ssl
import tempfile
from ipaddress import ip_address
from urllib.parse import urlsplit

from pilothouse.apiserver.outbound.tls import verifying_context
from pilothouse.apiserver.webhook.failures import NoClient, WebhookCallFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.ca_bundles import UNREADABLE_ROOTS

_PORT = 443


@dataclass(frozen=True, slots=True)
class ServiceReference:
    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Two configurations with the same one share connections. The name in `base` is the one that the certificate
    must have; a service is asked for only when a connection is made."""

    base: str
    path: str
    authorities: bytes
    """PEM. When empty, the system's."""
    service: ServiceReference | None = None

    @property
    def url(self) -> str:
        return self.base + self.path

    @property
    def target(self) -> str:
        """Host and port, by which credentials are found."""
        parts = urlsplit(self.base)
        return parts.netloc if parts.port else f"{parts.netloc}:{_PORT}"

    @property
    def protocols(self) -> list[str]:
        """What to offer. Under HTTP/2 all calls would share a connection, and so one of the pods that answer."""
        return ["h2", "http/1.1"] if self.service is None and _is_local(urlsplit(self.base).hostname) else ["http/1.1"]


def _is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def endpoint_of(config: Json) -> WebhookEndpoint:
    """Raises WebhookCallFailed for a configuration that points nowhere."""
    authorities = base64.b64decode(config.get("caBundle") or "").strip()
    if config.get("service"):
        service = config["service"]
        reference = ServiceReference(service["namespace"], service["name"], service.get("port") or _PORT)
        base = f"https://{reference.name}.{reference.namespace}.svc:{reference.port}"
        return WebhookEndpoint(base, _path(service.get("path") or ""), authorities, reference)
    if not config.get("url"):
        raise WebhookCallFailed("webhook configuration must have either service or URL")
    url = urlsplit(config["url"])
    if url.scheme != "https" or not url.netloc:
        raise WebhookCallFailed("'https' is the only allowed URL scheme; desired format: https://host[/path]")
    return WebhookEndpoint(f"https://{url.netloc}", _path(url.path), authorities)


def _path(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def tls_context(authorities: bytes, client_certificate: bytes = b"") -> ssl.SSLContext:
    """Raises WebhookCallFailed."""
    try:
        context = verifying_context(authorities.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError):
        raise NoClient(UNREADABLE_ROOTS) from None
    if client_certificate:
        _load(context, client_certificate)
    return context


def _load(context: ssl.SSLContext, client_certificate: bytes) -> None:
    """OpenSSL reads keys from files only; this one is unreadable for others, and gone when it has been read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(client_certificate)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise WebhookCallFailed(f"tls: failed to load the client certificate: {error.reason}") from None
