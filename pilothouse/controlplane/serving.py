"""HTTPS serving: certificates, trusted CAs, the front proxy, and the admin kubeconfig.

The generated front-proxy CA and client certificate need no flag. --proxy-client-cert-file replaces both. Other flags
add to the generated files: see docs/decisions/front-proxy.md.
"""

from __future__ import annotations

from pathlib import Path

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaderAuthenticator, RequestHeaders
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import KeyPair, parse_sni_certificate
from pilothouse.controlplane.certificates.ensure import FRONT_PROXY_CLIENT, ensure_certificates, write_kubeconfig
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.authentication import RequestHeaderOptions
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.kube.bootstrap.address import kubernetes_service_ip
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.files import write_atomically


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificates of the server, and the CAs that the server trusts."""

    own: CertificatePaths
    files: TlsFiles

    @classmethod
    def ensure(cls, options: CompletedOptions) -> Certificates:
        """Create or renew the certificates. Raises CertificateError, ValueError, OSError."""
        names = [name for name in (options.generic.external_hostname, *options.replicas.cert_extra_sans) if name]
        own = ensure_certificates(
            Path(options.pilothouse.data_dir),
            bind_address=options.generic.advertise_address,
            hostnames=names,
            service_ip=kubernetes_service_ip(options.misc.service_cluster_ip_range.partition(",")[0].strip()),
        )
        return cls(own, _files(options, own))

    @classmethod
    def made_by_another(cls, options: CompletedOptions) -> Certificates:
        """Return the certificates, which another process of this server maintains. Raises ValueError, OSError."""
        own = CertificatePaths.under(Path(options.pilothouse.data_dir))
        return cls(own, _files(options, own))

    def write_kubeconfig(self, path: Path, server_url: str) -> None:
        """Write the admin kubeconfig. A serving certificate from a flag is its own trust anchor."""
        cert_file = self.files.serving.cert_file
        ca = self.own.ca_cert if cert_file == self.own.serving_cert else cert_file
        write_kubeconfig(path, server_url=server_url, ca=ca, cert=self.own.admin_cert, key=self.own.admin_key)


def client_cas(options: CompletedOptions) -> tuple[Path, ...]:
    """Return --client-ca-file and the generated CA, which signs the admin certificate."""
    own, client_ca_file = (
        CertificatePaths.under(Path(options.pilothouse.data_dir)),
        options.authentication.client_ca_file,
    )
    return (own.ca_cert, Path(client_ca_file)) if client_ca_file else (own.ca_cert,)


def _files(options: CompletedOptions, own: CertificatePaths) -> TlsFiles:
    """Return the TLS files. TLS accepts certificates of users and front proxies; authentication distinguishes them.

    As upstream, create the pair in --cert-dir only if both files are missing.
    """
    secure = options.secure_serving
    pair = secure.given_pair
    if pair is not None and not secure.tls_cert_file:
        missing = [file for file in (pair.cert_file, pair.key_file) if not file.exists()]
        if len(missing) == 1:
            raise ValueError(f"could not read both {pair.cert_file} and {pair.key_file}: {missing[0]} is missing")
        if missing:
            pair.cert_file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(pair.cert_file, own.serving_cert.read_bytes() + own.ca_cert.read_bytes(), mode=0o644)
            write_atomically(pair.key_file, own.serving_key.read_bytes(), mode=0o600)
    return TlsFiles(
        serving=pair or KeyPair(own.serving_cert, own.serving_key),
        sni=tuple(parse_sni_certificate(value) for value in secure.tls_sni_cert_key),
        client_cas=(*client_cas(options), *front_proxy(options).cas),
    )


def secure_serving(secure: SecureServingOptions, files: TlsFiles) -> SecureServing:
    """Build the TLS endpoint. Raises ValueError, OSError."""
    return SecureServing(
        SecureServingInfo(
            files=files,
            bind_address=secure.bind_address,
            secure_port=secure.secure_port,
            tls_min_version=secure.tls_min_version,
            tls_cipher_suites=secure.tls_cipher_suites,
            disable_http2_serving=secure.disable_http2_serving,
            permit_port_sharing=secure.permit_port_sharing,
        )
    )


@dataclass(frozen=True, slots=True)
class FrontProxy:
    client: KeyPair
    """Client certificate for aggregated API servers."""
    cas: tuple[Path, ...]
    allowed_names: tuple[str, ...]
    headers: RequestHeaders

    @property
    def authenticator(self) -> RequestHeaderAuthenticator:
        """Raises OSError, ValueError."""
        return RequestHeaderAuthenticator(self.headers, AuthorityFiles(self.cas), self.allowed_names)


def front_proxy(options: CompletedOptions) -> FrontProxy:
    own = CertificatePaths.under(Path(options.pilothouse.data_dir))
    header_options, aggregator = options.request_header, options.aggregator
    cas = (Path(header_options.client_ca_file),) if header_options.client_ca_file else ()
    if aggregator.proxy_client_cert_file:
        client = KeyPair(Path(aggregator.proxy_client_cert_file), Path(aggregator.proxy_client_key_file))
        return FrontProxy(client, cas, header_options.allowed_names, _headers(header_options, _NO_HEADERS))
    return FrontProxy(
        KeyPair(own.front_proxy_client_cert, own.front_proxy_client_key),
        (own.front_proxy_ca_cert, *cas),
        _with_own_name(header_options),
        _headers(header_options, _NO_HEADERS if cas else STANDARD),
    )


_NO_HEADERS = RequestHeaders((), (), (), ())
"""The proxies of a given CA may set the headers that flags name, and no others."""


def _with_own_name(options: RequestHeaderOptions) -> tuple[str, ...]:
    """Return the allowed common names. A given CA without names allows every name."""
    if options.client_ca_file and not options.allowed_names:
        return ()
    return tuple(dict.fromkeys((FRONT_PROXY_CLIENT, *options.allowed_names)))


def _headers(options: RequestHeaderOptions, defaults: RequestHeaders) -> RequestHeaders:
    return RequestHeaders(
        username=options.username_headers or defaults.username,
        uid=options.uid_headers or defaults.uid,
        group=options.group_headers or defaults.group,
        extra_prefix=options.extra_headers_prefix or defaults.extra_prefix,
    )
