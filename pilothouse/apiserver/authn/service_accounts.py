"""User names and groups of service accounts."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.validation.names import is_dns1123_label, is_dns1123_subdomain

PREFIX = "system:serviceaccount:"
NODE_NAME = "authentication.kubernetes.io/node-name"
"""Extra key of the node that uses the token."""
_ALL = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class ServiceAccountName:
    namespace: str
    name: str


def user_name(namespace: str, name: str) -> str:
    return f"{PREFIX}{namespace}:{name}"


def group_names(namespace: str) -> tuple[str, ...]:
    return _ALL, f"{_ALL}:{namespace}"


def service_account_name(user: str) -> ServiceAccountName | None:
    """Return the service account of a user name, or None for other users."""
    namespace, _, name = user.removeprefix(PREFIX).partition(":")
    if not user.startswith(PREFIX) or is_dns1123_label(namespace) or is_dns1123_subdomain(name):
        return None
    return ServiceAccountName(namespace, name)
