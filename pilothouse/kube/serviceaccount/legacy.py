"""Legacy tokens in secrets: valid until the secret or account is deleted, without expiration.

The secret's label records the day of the last use, to find unused tokens.
"""

from __future__ import annotations

import base64
import hmac
import logging
from datetime import timedelta

from pilothouse.apiserver.authn.interface import NO_REMARKS, InvalidToken, TokenRemarks, identity
from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.controllers.serviceaccount import token_secrets
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.serviceaccount.authenticator import AUTO_TOKENS, INVALID_AUTO_TOKENS, LEGACY_TOKENS, MANUAL_TOKENS
from pilothouse.kube.serviceaccount.validator import TokenGetter
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, text, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import Clock, system_clock

logger = logging.getLogger(__name__)

_ANNOTATION = "authentication.k8s.io"
_WARNING = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated"
    " secret-based tokens."
)
_REQUIRED = {
    "sub": "sub claim is missing",
    token_secrets.CLAIMED_NAMESPACE: "namespace claim is missing",
    token_secrets.CLAIMED_SECRET: "secretName claim is missing",
    token_secrets.CLAIMED_NAME: "serviceAccountName claim is missing",
    token_secrets.CLAIMED_UID: "serviceAccountUID claim is missing",
}


@dataclass(frozen=True, slots=True)
class SecretUses:
    """Writes down when the token of a secret was used, once a day."""

    secrets: OwnAccess
    clock: Clock = system_clock

    async def note(self, secret: Json) -> None:
        today = self.clock().date()
        if labels_of(secret).get(token_secrets.LAST_USED) in (
            today.isoformat(),
            (today + timedelta(days=1)).isoformat(),
        ):
            return

        def label(current: Json) -> None:
            metadata(current)["labels"] = labels_of(current) | {token_secrets.LAST_USED: today.isoformat()}

        try:
            await self.secrets.update(secret, label)
        except StatusError as error:
            where = f"{namespace_of(secret)}/{name_of(secret)}"
            logger.error("Failed to label legacy service account token %s with last-used date: %s", where, error)


@dataclass(frozen=True, slots=True)
class LegacyValidator:
    getter: TokenGetter
    uses: SecretUses
    lookup: bool = True
    """Whether to check secret and account: --service-account-lookup."""

    def user_of(self, claims: Json) -> User:
        """Raises InvalidToken."""
        for claim, problem in _REQUIRED.items():
            if not text(claims, claim):
                raise InvalidToken(problem)
        namespace, name = claims[token_secrets.CLAIMED_NAMESPACE], claims[token_secrets.CLAIMED_NAME]
        if claims["sub"] != user_name(namespace, name):
            raise InvalidToken("sub claim is invalid")
        groups = (*group_names(namespace), ALL_AUTHENTICATED)
        return identity(claims["sub"], uid=claims[token_secrets.CLAIMED_UID], groups=groups)

    async def validate(self, claims: Json, token: str) -> TokenRemarks:
        """Raises InvalidToken."""
        LEGACY_TOKENS.inc()
        if not self.lookup:
            return NO_REMARKS
        secret = await self.getter.secret(claims[token_secrets.CLAIMED_NAMESPACE], claims[token_secrets.CLAIMED_SECRET])
        if secret is None or is_deleting(secret):
            raise InvalidToken("Token has been invalidated")
        stored_token = base64.b64decode((secret.get("data") or {}).get("token") or "")
        if not hmac.compare_digest(stored_token, token.encode()):
            raise InvalidToken("Token does not match server's copy")
        namespace, name, uid = (
            claims[token_secrets.CLAIMED_NAMESPACE],
            claims[token_secrets.CLAIMED_NAME],
            claims[token_secrets.CLAIMED_UID],
        )
        account = await self.getter.service_account(namespace, name)
        if account is None:
            raise InvalidToken(NotFound.of(GroupResource("", "serviceaccounts"), name).message)
        if is_deleting(account):
            raise InvalidToken(f"ServiceAccount {namespace}/{name} has been deleted")
        if uid_of(account) != uid:
            raise InvalidToken(f"ServiceAccount UID ({uid_of(account)}) does not match claim ({uid})")
        if labels_of(secret).get(token_secrets.INVALID_SINCE):
            INVALID_AUTO_TOKENS.inc()
            await self.uses.note(secret)
            raise InvalidToken(_invalidated(secret, account))
        await self.uses.note(secret)
        return _remarks(claims["sub"], name_of(secret), generated=token_secrets.refers_to(account, name_of(secret)))


def _remarks(subject: str, secret: str, *, generated: bool) -> TokenRemarks:
    (AUTO_TOKENS if generated else MANUAL_TOKENS).inc()
    kind = "legacy-token-autogenerated-secret" if generated else "legacy-token-manual-secret"
    annotations = ((f"{_ANNOTATION}/legacy-token", subject), (f"{_ANNOTATION}/{kind}", secret))
    return TokenRemarks((_WARNING,) if generated else (), annotations)


def _invalidated(secret: Json, account: Json) -> str:
    namespace = namespace_of(secret)
    return (
        f"the token in secret {namespace}/{name_of(secret)} for service account {namespace}/{name_of(account)} has been"
        " marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the"
        f" '{token_secrets.INVALID_SINCE}' label from the secret to temporarily allow use of this token"
    )
