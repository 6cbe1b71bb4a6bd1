"""What an extension API server must be allowed in its cluster to leave authentication and authorization to it."""

from __future__ import annotations

from typing import Final

from pilothouse.kube.bootstrap.cluster_authentication_trust import NAMESPACE

TRUST_READER: Final = "extension-apiserver-authentication-reader"
"""The Role, in kube-system, of those who may read the ConfigMap that says whom the cluster believes."""
AUTH_DELEGATOR: Final = "system:auth-delegator"
"""The ClusterRole of those who may ask for TokenReviews and SubjectAccessReviews."""

_SERVICE_ACCOUNT = "system:serviceaccount:"


def bind_trust_reader(user: str) -> str:
    """Return the command that lets the user read the ConfigMap."""
    who, name = _subject(user)
    return f"kubectl create rolebinding -n {NAMESPACE} {name}-auth-reader --role={TRUST_READER} {who}"


def bind_auth_delegator(user: str) -> str:
    """Return the command that lets the user ask for reviews."""
    who, name = _subject(user)
    return f"kubectl create clusterrolebinding {name}-auth-delegator --clusterrole={AUTH_DELEGATOR} {who}"


def _subject(user: str) -> tuple[str, str]:
    """The flag that names the user, and what a binding of theirs may be called."""
    namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if user.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={namespace}:{name}", f"{namespace}-{name}"
    return (f"--user={user}", "NAME") if user else ("--serviceaccount=NAMESPACE:SERVICEACCOUNT", "NAME")
