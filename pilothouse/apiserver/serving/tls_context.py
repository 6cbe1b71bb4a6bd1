"""TLS contexts: one per certificate, selected by SNI name or local address.

Names match like in Go: exactly, then with the first label replaced by `*`. Configured names take precedence over names
in certificates, and earlier certificates over later ones.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from pilothouse.apiserver.serving.openssl import server_context
from pilothouse.apiserver.serving.tls_options import KeyPair, SniCertificate, TlsOptions, certificate_names
from pilothouse.machinery.dataclass import dataclass

_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of the server's TLS configuration.

    >>> from pathlib import Path
    >>> from pilothouse.apiserver import KeyPair, TlsFiles
    >>> files = TlsFiles(KeyPair(Path("server.crt"), Path("server.key")), client_cas=(Path("ca.crt"),))
    >>> [path.name for path in files.paths]
    ['server.crt', 'server.key', 'ca.crt']
    """

    serving: KeyPair
    sni: tuple[SniCertificate, ...] = ()
    client_cas: tuple[Path, ...] = ()

    @property
    def paths(self) -> list[Path]:
        pairs = [self.serving, *(certificate.pair for certificate in self.sni)]
        return [path for pair in pairs for path in (pair.cert_file, pair.key_file)] + list(self.client_cas)


class ServingContexts:
    """The contexts for a state of the files. Raises OSError or ValueError for unusable files."""

    def __init__(self, files: TlsFiles, options: TlsOptions, alpn: Sequence[str]) -> None:
        self._files, self._options, self._alpn = files, options, alpn
        self._default = self._build(files.serving)
        self._by_name = self._named()
        for context in {self._default, *self._by_name.values()}:
            context.sni_callback = self._greet

    def for_address(self, local: str) -> ssl.SSLContext:
        """Return the context for a connection to this local address, before SNI."""
        if not self._by_name:
            return self._default
        return self._by_name.get(_plain(local), self._default)

    def _greet(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        """Select the context by SNI name, and reject resumed sessions. TLS 1.2 resumes by session id if the OpenSSL
        cache cannot be disabled. The alert evicts the session, so the next attempt is a full handshake."""
        if connection.session_reused:
            return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
        if name is not None and self._by_name:
            connection.context = self._for_name(name.lower())
        return None

    def _for_name(self, name: str) -> ssl.SSLContext:
        wildcard = "*" + name[name.find(".") :] if "." in name else "*"
        return self._by_name.get(name) or self._by_name.get(wildcard) or self._default

    def _named(self) -> dict[str, ssl.SSLContext]:
        given: dict[str, ssl.SSLContext] = {}
        found: dict[str, ssl.SSLContext] = {}
        for certificate in reversed(self._files.sni):
            context = self._build(certificate.pair)
            names = certificate.names or certificate_names(certificate.pair.cert_file)
            (given if certificate.names else found).update((name.lower(), context) for name in names)
        return found | given

    def _build(self, pair: KeyPair) -> ssl.SSLContext:
        context, requests = server_context()
        context.minimum_version = self._options.min_version
        if self._options.ciphers:
            context.set_ciphers(self._options.ciphers)
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.load_cert_chain(pair.cert_file, pair.key_file)
        context.set_alpn_protocols(list(self._alpn))
        # No resumption: resumed sessions have no verified chain, and Go clients keep no sessions.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        if requests is not None:
            requests.keep_no_sessions()
        # Expiry and CA of client certificates are checked per request; see authn/x509.py.
        if self._files.client_cas:
            for authority in self._files.client_cas:
                context.load_verify_locations(cafile=authority)
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
            if requests is not None:
                requests.go_on_unverified()
                requests.name_authorities(self._files.client_cas)
        return context


def _plain(address: str) -> str:
    """Normalize an address: IPv4-mapped addresses of dual-stack sockets become IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
