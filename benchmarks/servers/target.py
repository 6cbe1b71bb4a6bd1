"""A server under load: where it is, how to get in, and which process it is."""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    url: str
    token: str
    ca_file: str | None
    pid: int | None = None
    """The server's process, for its memory; None where it is not on this machine."""
    others: tuple[int, ...] = ()
    """Further processes of the server that are not its children, such as its etcd."""

    @classmethod
    def from_kubeconfig(cls, path: Path, *, name: str = "", pid: int | None = None) -> Target:
        """The current context. It must have a token, because h2load has no client certificates."""
        config = yaml.safe_load(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        if "token" not in user:
            raise SystemExit(f"{path}: the user has no token; give the server a --token-auth-file and put it there")
        return cls(name or path.stem, cluster["server"], user["token"], _ca_file(cluster), pid)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return parts.hostname, parts.port or 443

    @property
    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.ca_file is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _ca_file(cluster: dict[str, Any]) -> str | None:
    data = cluster.get("certificate-authority-data")
    if data is None:
        return cluster.get("certificate-authority")
    with tempfile.NamedTemporaryFile("wb", suffix=".crt", delete=False) as file:
        file.write(base64.b64decode(data))
    return file.name
