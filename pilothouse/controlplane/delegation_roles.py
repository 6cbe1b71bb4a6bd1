"""Roles that an extension API server needs for delegated authentication and authorization."""

from __future__ import annotations

from typing import Final

from pilothouse.kube.bootstrap.cluster_authentication_trust import NAMESPACE

TRUST_READER: Final = "extension-apiserver-authentication-reader"
"""Role in kube-system that grants read access to the ConfigMap extension-apiserver-authentication."""
AUTH_DELEGATOR: Final = "system:auth-delegator"
"""ClusterRole that grants creation of TokenReviews and SubjectAccessReviews."""

_SERVICE_ACCOUNT = "system:serviceaccount:"


def bind_trust_reader(user: str) -> str:
    """Return the kubectl command that grants `user` the trust reader role."""
    subject, name = _subject(user)
    return f"kubectl create rolebinding -n {NAMESPACE} {name}-auth-reader --role={TRUST_READER} {subject}"


def bind_auth_delegator(user: str) -> str:
    """Return the kubectl command that grants `user` the auth delegator role."""
    subject, name = _subject(user)
    return f"kubectl create clusterrolebinding {name}-auth-delegator --clusterrole={AUTH_DELEGATOR} {subject}"


def _subject(user: str) -> tuple[str, str]:
    """Return (kubectl flag for the subject, prefix of the binding's name)."""
    namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if user.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={namespace}:{name}", f"{namespace}-{name}"
    return (f"--user={user}", "NAME") if user else ("--serviceaccount=NAMESPACE:SERVICEACCOUNT", "NAME")
