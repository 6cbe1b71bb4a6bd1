"""The endpoint of a WebhookClientConfig, the server's credentials for it, and the errors of calls.

Errors have client-go's messages, which users search for.
"""

from __future__ import annotations

import base64
import posixpath
import ssl
import tempfile
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from pilothouse.apiserver.outbound.tls import verifying_context
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.objects import Json
from pilothouse.machinery.pem import UNREADABLE_ROOTS
from pilothouse.machinery.server_errors import generic_response
from pilothouse.machinery.status_error import StatusError

_PORT = 443


@dataclass(frozen=True, slots=True)
class ServiceReference:
    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """A webhook endpoint, and the key of shared connections. The certificate must match the host name in `base`;
    services are resolved on connect only."""

    base: str
    path: str
    authorities: bytes
    """PEM bundle; empty = the system's CAs."""
    service: ServiceReference | None = None

    @property
    def url(self) -> str:
        return self.base + self.path

    @property
    def target(self) -> str:
        """Return host:port, the lookup key of credentials."""
        parts = urlsplit(self.base)
        return parts.netloc if parts.port else f"{parts.netloc}:{_PORT}"

    @property
    def protocols(self) -> list[str]:
        """Return the ALPN protocols. HTTP/2 would multiplex all calls over a single connection, and therefore a single
        pod."""
        return ["h2", "http/1.1"] if self.service is None and _is_local(urlsplit(self.base).hostname) else ["http/1.1"]


def _is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def endpoint_of(config: Json) -> WebhookEndpoint:
    """Return the endpoint. Raises WebhookCallFailed for an invalid configuration."""
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
    """Build the TLS context. Raises WebhookCallFailed."""
    try:
        context = verifying_context(authorities.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError):
        raise NoClient(UNREADABLE_ROOTS) from None
    if client_certificate:
        _load(context, client_certificate)
    return context


def _load(context: ssl.SSLContext, client_certificate: bytes) -> None:
    """Load the certificate through a private temporary file, because OpenSSL reads keys from files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(client_certificate)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise WebhookCallFailed(f"tls: failed to load the client certificate: {error.reason}") from None


class WebhookCredentials(Protocol):
    @property
    def client_certificate(self) -> bytes:
        """Return certificate and key as PEM; empty without a certificate."""

    async def headers(self) -> Mapping[str, str]:
        """Return the current authentication headers."""


FindCredentials: TypeAlias = Callable[[str], WebhookCredentials | None]
"""Find the credentials for a webhook at host:port or name.namespace.svc:port."""


def anonymous(target: str) -> WebhookCredentials | None:
    """Return None: the default without configured credentials."""
    return None


_MAX_TEXT = 2048
_UNEXPECTED = "UnexpectedServerResponse"


class WebhookCallFailed(Exception):
    """The call failed; `status` is set if the webhook returned an error response."""

    def __init__(self, text: str, *, status: StatusError | None = None) -> None:
        super().__init__(text)
        self.status = status


class NoClient(WebhookCallFailed):
    """The call was not made because the configuration is invalid."""


def refused(code: int, content_type: str, body: bytes) -> WebhookCallFailed:
    """Build the error of an error response from its Status, or from the HTTP code."""
    status = status_in(body)
    is_failure = status is not None and status.get("status") == "Failure"
    error = from_status(status, http_code=code) if status and is_failure else _generic(code, content_type, body)
    return WebhookCallFailed(error.message, status=error)


def _generic(code: int, content_type: str, body: bytes) -> StatusError:
    is_text = not content_type or content_type.startswith("text/")
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip() if is_text else "unknown"
    response = generic_response(code, text, method="POST")
    details = {"causes": [{"reason": _UNEXPECTED, "message": text}]}
    return from_status({"reason": response.reason, "message": response.message, "code": code, "details": details})
