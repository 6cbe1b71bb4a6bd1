"""The front proxy: which proxies are believed about users, and what this server shows as one itself.

The CA and the client certificate in the data directory work without any flag. With a --proxy-client-cert-file they play
no part. Otherwise flags add to them: see docs/decisions/front-proxy.md.
"""

from __future__ import annotations

from pathlib import Path

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaderAuthenticator, RequestHeaders
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.controlplane.certificates.ensure import FRONT_PROXY_CLIENT
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.request_header import RequestHeaderOptions
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FrontProxy:
    client: KeyPair
    """The certificate that is shown to the servers that this one is the front proxy of."""
    cas: tuple[Path, ...]
    allowed_names: tuple[str, ...]
    headers: RequestHeaders

    @property
    def authenticator(self) -> RequestHeaderAuthenticator:
        """Raises OSError, ValueError."""
        return RequestHeaderAuthenticator(self.headers, AuthorityFiles(self.cas), self.allowed_names)


def front_proxy(options: CompletedOptions) -> FrontProxy:
    own = CertificatePaths.under(Path(options.pilothouse.data_dir))
    given, aggregator = options.request_header, options.aggregator
    cas = (Path(given.client_ca_file),) if given.client_ca_file else ()
    if aggregator.proxy_client_cert_file:
        client = KeyPair(Path(aggregator.proxy_client_cert_file), Path(aggregator.proxy_client_key_file))
        return FrontProxy(client, cas, given.allowed_names, _headers(given, RequestHeaders((), (), (), ())))
    return FrontProxy(
        KeyPair(own.front_proxy_client_cert, own.front_proxy_client_key),
        (own.front_proxy_ca_cert, *cas),
        _with_own_name(given),
        _headers(given, STANDARD),
    )


def _with_own_name(given: RequestHeaderOptions) -> tuple[str, ...]:
    """A CA that was given without names is believed whatever they are."""
    if given.client_ca_file and not given.allowed_names:
        return ()
    return tuple(dict.fromkeys((FRONT_PROXY_CLIENT, *given.allowed_names)))


def _headers(given: RequestHeaderOptions, otherwise: RequestHeaders) -> RequestHeaders:
    return RequestHeaders(
        username=given.username_headers or otherwise.username,
        uid=given.uid_headers or otherwise.uid,
        group=given.group_headers or otherwise.group,
        extra_prefix=given.extra_headers_prefix or otherwise.extra_prefix,
    )
