"""The token issuer: signs claims in its name."""

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
        """Raises OSError, ValueError where the key can not be read."""
        await self.key.load()
        import jwt

        verifying = self.key.verifying
        payload = orjson.dumps(claims | {"iss": self.name}, option=orjson.OPT_SORT_KEYS)
        # A type header is not written, as upstream's tokens have none.
        headers = {"kid": verifying.id, "typ": None}
        return jwt.PyJWS().encode(payload, self.key.private, algorithm=verifying.algorithm, headers=headers)
