"""HTTPS: the certificates that the server shows, whom it believes, and the kubeconfig that fits."""

from __future__ import annotations

from pathlib import Path

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaderAuthenticator, RequestHeaders
from pilothouse.apiserver.serving.certificate_files import KeyPair, parse_sni_certificate
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.tls_context import TlsFiles
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
    """The certificates that the server shows, and the authorities that it believes."""

    own: CertificatePaths
    files: TlsFiles

    @classmethod
    def ensure(cls, options: CompletedOptions) -> Certificates:
        """Raises CertificateError, ValueError, OSError."""
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
        """Return those that another process of this server sees to. Raises ValueError, OSError."""
        own = CertificatePaths.under(Path(options.pilothouse.data_dir))
        return cls(own, _files(options, own))

    def write_kubeconfig(self, path: Path, server_url: str) -> None:
        """A kubeconfig with every right. A serving certificate that was given vouches for itself."""
        given = self.files.serving.cert_file
        ca = self.own.ca_cert if given == self.own.serving_cert else given
        write_kubeconfig(path, server_url=server_url, ca=ca, cert=self.own.admin_cert, key=self.own.admin_key)


def client_cas(options: CompletedOptions) -> tuple[Path, ...]:
    """Besides the --client-ca-file our own CA is always believed: it signed the admin's certificate."""
    own, given = CertificatePaths.under(Path(options.pilothouse.data_dir)), options.authentication.client_ca_file
    return (own.ca_cert, Path(given)) if given else (own.ca_cert,)


def _files(options: CompletedOptions, own: CertificatePaths) -> TlsFiles:
    """TLS takes certificates of users and of front proxies; authentication tells them apart."""
    secure = options.secure_serving
    given = secure.given_pair
    if given is not None and not secure.tls_cert_file:
        _ensure_in_cert_dir(given, own)
    return TlsFiles(
        serving=given or KeyPair(own.serving_cert, own.serving_key),
        sni=tuple(parse_sni_certificate(value) for value in secure.tls_sni_cert_key),
        client_cas=(*client_cas(options), *front_proxy(options).cas),
    )


def _ensure_in_cert_dir(pair: KeyPair, own: CertificatePaths) -> None:
    """As upstream: what is there is used, and made only where neither file is. The chain vouches for itself.

    Raises ValueError, OSError.
    """
    missing = [file for file in (pair.cert_file, pair.key_file) if not file.exists()]
    if len(missing) == 1:
        raise ValueError(f"could not read both {pair.cert_file} and {pair.key_file}: {missing[0]} is missing")
    if missing:
        pair.cert_file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(pair.cert_file, own.serving_cert.read_bytes() + own.ca_cert.read_bytes(), mode=0o644)
        write_atomically(pair.key_file, own.serving_key.read_bytes(), mode=0o600)


def secure_serving(secure: SecureServingOptions, files: TlsFiles) -> SecureServing:
    """Raises ValueError, OSError."""
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
