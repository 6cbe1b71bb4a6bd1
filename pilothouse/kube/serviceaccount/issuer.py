"""The issuer of signed tokens."""

from __future__ import annotations

import orjson

from pilothouse.kube.serviceaccount.keys import SigningKey
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    name: str
    key: SigningKey

    async def sign(self, claims: Json) -> str:
        """Raise OSError or ValueError for an unreadable key."""
        await self.key.load()
        import jwt

        verifying = self.key.verifying
        payload = orjson.dumps(claims | {"iss": self.name}, option=orjson.OPT_SORT_KEYS)
        # Upstream's tokens have no `typ` header.
        headers = {"kid": verifying.id, "typ": None}
        return jwt.PyJWS().encode(payload, self.key.private, algorithm=verifying.algorithm, headers=headers)
