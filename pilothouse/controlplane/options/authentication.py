"""Authentication: who may be asking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pilothouse.controlplane.flags.declare import flag
from pilothouse.controlplane.flags.values import BOOL, STRING
from pilothouse.controlplane.options.files import missing_files


@dataclass(frozen=True)
class AuthenticationOptions:
    title: ClassVar[str] = "authentication"

    anonymous_auth: bool = flag("anonymous-auth", BOOL, True, "Serve requests without credentials as system:anonymous.")
    client_ca_file: str = flag(
        "client-ca-file", STRING, "", "The CA whose client certificates are users. Without it, the CA in --data-dir."
    )
    token_auth_file: str = flag("token-auth-file", STRING, "", 'A CSV file of tokens: token,user,uid[,"group,group"].')

    def validate(self) -> Iterator[str]:
        yield from missing_files({"client-ca-file": self.client_ca_file, "token-auth-file": self.token_auth_file})
