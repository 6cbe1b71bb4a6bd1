"""Authorization for signers."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision


async def may_act_for_signer(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """Report whether the user may perform the verb for the signer or for its whole domain."""
    for name in (signer, signer.partition("/")[0] + "/*"):
        question = Attributes(
            user=user,
            verb=verb,
            is_resource=True,
            group="certificates.k8s.io",
            version="*",
            resource="signers",
            name=name,
        )
        if (await authorizer.authorize(question)).decision is Decision.ALLOW:
            return True
    return False
