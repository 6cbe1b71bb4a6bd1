"""Who we are, at this moment: tokens that are read from a file again and again, or that a program prints."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Protocol

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.exec_plugin import ExecPlugin
from pilothouse.client.config.model import ClientConfig, ConfigError, Credentials
from pilothouse.machinery.dataclass import dataclass

TOKEN_FILE_PERIOD = 60.0


class CredentialSource(Protocol):
    async def get(self) -> Credentials: ...

    def rejected(self, credentials: Credentials) -> None:
        """The server answered 401 to these: get others if there are any."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    credentials: Credentials

    async def get(self) -> Credentials:
        return self.credentials

    def rejected(self, credentials: Credentials) -> None:
        return


@dataclass(slots=True)
class TokenFile:
    """A token that something else keeps fresh, as kubelet does for pods. A file that has gone bad is not used."""

    path: Path
    clock: Clock = REAL_CLOCK
    _cached: Credentials | None = None
    _read_at: float = field(default=0.0)

    async def get(self) -> Credentials:
        if self._cached is None or self.clock.now() - self._read_at >= TOKEN_FILE_PERIOD:
            self._cached = self._read()
            self._read_at = self.clock.now()
        return self._cached

    def rejected(self, credentials: Credentials) -> None:
        if credentials == self._cached:
            self._read_at = float("-inf")

    def _read(self) -> Credentials:
        try:
            token = self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            token = ""
            reason = str(error)
        else:
            reason = f"{self.path} is empty"
        if token:
            return Credentials(token=token)
        if self._cached is None:
            raise ConfigError(f"failed to read the token file: {reason}")
        return self._cached


def credential_source(config: ClientConfig, clock: Clock = REAL_CLOCK) -> CredentialSource:
    """A token file goes before a token, as upstream; an exec plugin is asked only when there is neither."""
    if config.token_file is not None:
        return TokenFile(config.token_file, clock)
    if config.exec is not None and not config.token and not config.username:
        return ExecPlugin(config.exec, clock)
    return StaticCredentials(Credentials(token=config.token))
