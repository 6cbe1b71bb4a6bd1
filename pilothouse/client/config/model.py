"""Everything a client needs to know to reach a server and be known to it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError


class ConfigError(PilothouseError):
    """The configuration can not be used; the message says what is wrong with it.

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
    """PEM data goes before files. Without a CA the system's are trusted."""

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
    """A program that prints credentials (an ExecCredential)."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Json | None = None
    """The facts of the cluster that the program is told; None if it did not ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpersonationConfig:
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Where a server is, who we are to it, and how often we may ask. Without `qps` there is no limit.

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
    """The credentials of a request: a bearer token, a client certificate (PEM), both or neither."""

    token: str = field(default="", repr=False)
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
