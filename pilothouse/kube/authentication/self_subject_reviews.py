"""SelfSubjectReviews: who am I?"""

from __future__ import annotations

from pilothouse.apiserver.authn.user_info import user_info
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now


class SelfSubjectReviews:
    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        await validate(obj)
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {"creationTimestamp": now()},
            "status": {"userInfo": user_info(ctx.user)},
        }
