"""Token secrets of service accounts: identification and claims of their tokens."""

from __future__ import annotations

import base64

from pilothouse.apiserver.authn.service_accounts import user_name
from pilothouse.machinery.objects import Json, annotations_of, name_of, namespace_of, uid_of

TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"

ARE_TOKENS = f"type={TOKEN_TYPE}"
"""Field selector of token secrets."""

LEGACY_ISSUER = "kubernetes/serviceaccount"
"""Issuer of non-expiring tokens in secrets."""
_CLAIM = "kubernetes.io/serviceaccount"
CLAIMED_NAMESPACE = f"{_CLAIM}/namespace"
CLAIMED_SECRET = f"{_CLAIM}/secret.name"
CLAIMED_NAME = f"{_CLAIM}/service-account.name"
CLAIMED_UID = f"{_CLAIM}/service-account.uid"


def legacy_claims(account: Json, secret: Json) -> Json:
    """Return all claims except the issuer."""
    namespace, name = namespace_of(account), name_of(account)
    return {
        "sub": user_name(namespace, name),
        CLAIMED_NAMESPACE: namespace,
        CLAIMED_NAME: name,
        CLAIMED_UID: uid_of(account),
        CLAIMED_SECRET: name_of(secret),
    }


def is_token_of(secret: Json, account: Json) -> bool:
    """Return whether the secret belongs to the account; without a uid annotation, the name decides."""
    annotations = annotations_of(secret)
    return annotations.get(ACCOUNT_NAME) == name_of(account) and annotations.get(ACCOUNT_UID, "") in (
        "",
        uid_of(account),
    )


def refers_to(account: Json, secret: str) -> bool:
    return any(reference.get("name") == secret for reference in account.get("secrets") or ())


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
