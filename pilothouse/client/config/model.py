"""Client configuration: server address, TLS, credentials, rate limit."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError


class ConfigError(PilothouseError):
    """The configuration is invalid; the message describes the problem.

    >>> from pilothouse.client import load_kubeconfig
    >>> from pilothouse.errors import ConfigError
    >>> try:
    ...     load_kubeconfig("/nowhere/config")
    ... except ConfigError as error:
    ...     print("no configuration:", error)
    no configuration: ...
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSConfig:
    """TLS settings. PEM data takes precedence over files. Without a CA, the system's CAs are trusted."""

    ca_data: bytes = b""
    ca_file: Path | None = None
    cert_data: bytes = field(default=b"", repr=False)
    cert_file: Path | None = None
    key_data: bytes = field(default=b"", repr=False)
    key_file: Path | None = None
    insecure: bool = False
    server_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecConfig:
    """Exec credential plugin: a program that prints an ExecCredential."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Json | None = None
    """Cluster information passed to the program; None if provideClusterInfo is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpersonationConfig:
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Server address, TLS settings, credentials and rate limit. `qps=0` disables the rate limit.

    >>> from pilothouse.client import ClientConfig
    >>> ClientConfig(host="https://127.0.0.1:6443", qps=0).host
    'https://127.0.0.1:6443'
    """

    host: str
    namespace: str = "default"
    tls: TLSConfig = TLSConfig()
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecConfig | None = None
    impersonate: ImpersonationConfig = ImpersonationConfig()
    proxy_url: str = ""
    disable_compression: bool = False
    user_agent: str = "pilothouse"
    timeout: float | None = None
    qps: float = 50.0
    burst: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of a request: a bearer token, a client certificate (PEM), both or neither."""

    token: str = field(default="", repr=False)
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
