"""The authenticator that the options ask for: client certificates first, then tokens."""

from __future__ import annotations

from pathlib import Path

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.tokens import TokenAuthenticator, read_token_file
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.controlplane.options.authentication import AuthenticationOptions


def build_authenticator(options: AuthenticationOptions) -> Authenticator:
    """Raises ValueError when the token file makes no sense, OSError when it can not be read."""
    tokens = read_token_file(Path(options.token_auth_file)) if options.token_auth_file else {}
    return UnionAuthenticator([X509Authenticator(), TokenAuthenticator(tokens)])
