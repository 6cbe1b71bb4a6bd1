"""ExecPlugin: credentials printed by a program as an ExecCredential (client.authentication.k8s.io).

The program runs when credentials are first needed, after they expired, and after the server rejected them. Concurrent
requests wait for the same run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime

import orjson

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.model import ConfigError, Credentials, ExecConfig
from pilothouse.machinery.objects import Json

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecPlugin:
    def __init__(self, config: ExecConfig, clock: Clock = REAL_CLOCK) -> None:
        if config.api_version not in API_VERSIONS:
            raise ConfigError(f"exec plugin: invalid apiVersion {config.api_version!r}")
        self._config = config
        self._clock = clock
        self._lock = asyncio.Lock()
        self._cached: Credentials | None = None
        self._expires = float("inf")

    async def get(self) -> Credentials:
        async with self._lock:
            if self._cached is None or self._clock.wall() >= self._expires:
                self._cached = self._credentials(await self._run())
            return self._cached

    def rejected(self, credentials: Credentials) -> None:
        if credentials == self._cached:
            self._cached = None

    async def _run(self) -> bytes:
        interactive = self._interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._config.command,
                *self._config.args,
                env=os.environ | dict(self._config.env) | {"KUBERNETES_EXEC_INFO": self._exec_info(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError:
            hint = f"\n\n{self._config.install_hint}" if self._config.install_hint else ""
            raise ConfigError(f"exec: executable {self._config.command} not found{hint}") from None
        except OSError as error:
            raise ConfigError(f"exec: {error}") from error
        output, _ = await process.communicate()
        if process.returncode:
            raise ConfigError(f"exec: executable {self._config.command} failed with exit code {process.returncode}")
        return output

    def _interactive(self) -> bool:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        match self._config.interactive_mode:
            case "Never":
                return False
            case "IfAvailable":
                return terminal
            case "Always" if terminal:
                return True
            case "Always":
                raise ConfigError("exec plugin cannot support interactive mode: standard input is not a terminal")
            case mode:
                raise ConfigError(f"exec plugin: unknown interactiveMode: {mode!r}")

    def _exec_info(self, interactive: bool) -> str:
        spec: Json = {"interactive": interactive}
        if self._config.cluster is not None:
            spec["cluster"] = self._config.cluster
        info = {"kind": "ExecCredential", "apiVersion": self._config.api_version, "spec": spec}
        return orjson.dumps(info).decode()

    def _credentials(self, output: bytes) -> Credentials:
        try:
            credential = orjson.loads(output)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"exec plugin: decoding stdout: {error}") from error
        version = credential.get("apiVersion") if isinstance(credential, dict) else None
        if version != self._config.api_version:
            expected = self._config.api_version
            raise ConfigError(f"exec plugin is configured to use API version {expected}, plugin returned {version}")
        status = credential.get("status")
        if not isinstance(status, dict):
            raise ConfigError("exec plugin didn't return a status field")
        certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
        token = status.get("token") or ""
        if not token and not certificate and not key:
            raise ConfigError("exec plugin didn't return a token or cert/key pair")
        if bool(certificate) != bool(key):
            raise ConfigError("exec plugin returned only certificate or key, not both")
        expires = status.get("expirationTimestamp")
        self._expires = datetime.fromisoformat(expires).timestamp() if expires else float("inf")
        return Credentials(token=token, cert_data=certificate.encode(), key_data=key.encode())
