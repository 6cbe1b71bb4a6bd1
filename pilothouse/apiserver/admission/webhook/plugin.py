"""The base class of both webhook plugins: webhook selection and matching."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import NOT_YET_READY, Attributes, Operation, refused
from pilothouse.apiserver.admission.match_conditions import Owner, conditions_hold
from pilothouse.apiserver.admission.matching import Match, Matcher, is_exempt, is_review
from pilothouse.apiserver.admission.versioned import versioned
from pilothouse.apiserver.admission.webhook.calling import WebhookClient
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.storage.errors import CacheNotReady
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden

GetWebhooks: TypeAlias = Callable[[], Awaitable[Sequence[AdmissionWebhook]]]
"""Return all webhooks of a type, sorted by configuration name and position. Raises CacheNotReady."""

GetStaticWebhooks: TypeAlias = Callable[[], Sequence[AdmissionWebhook]]
"""Return the static webhooks, in the same order."""


def no_static_webhooks() -> Sequence[AdmissionWebhook]:
    return ()


@dataclass(frozen=True, slots=True)
class WebhookPlugin:
    get_webhooks: GetWebhooks
    matcher: Matcher
    authorizer: Authorizer
    """The authorizer for match conditions."""
    client: WebhookClient
    get_static_webhooks: GetStaticWebhooks = no_static_webhooks

    def handles(self, operation: Operation) -> bool:
        return True

    async def webhooks(self, attributes: Attributes) -> Sequence[AdmissionWebhook]:
        """Return the webhooks, static webhooks first; none for reviews since 1.37. Admission configuration is subject
        to static webhooks only, so clients cannot lock themselves out. Raises Forbidden until the webhooks are
        loaded."""
        if is_review(attributes) and enabled("ExcludeAdmissionWebhookVirtualResources"):
            return ()
        static = self.get_static_webhooks()
        if is_exempt(attributes):
            return static
        try:
            hooks = await self.get_webhooks()
        except CacheNotReady:
            raise refused(attributes, NOT_YET_READY) from None
        return (*static, *hooks) if static else hooks

    async def match(self, hook: AdmissionWebhook, attributes: Attributes, type: str) -> Match | None:
        """Return the match, or None to skip the webhook. Raises Forbidden if matching fails."""
        match = await self.matcher.matches(attributes, hook.criteria)
        if match is None or hook.conditions is None:
            return match
        from pilothouse.apiserver.cel.authorization import Authorizations
        from pilothouse.apiserver.cel.match_conditions import MatchFailed

        owner = Owner(hook.name, "webhook", type, hook.fails_open)
        authorizations = Authorizations(self.authorizer, attributes.user)
        try:
            holds = await conditions_hold(hook.conditions, await versioned(attributes, match), owner, authorizations)
        except MatchFailed as error:
            raise Forbidden.of(attributes.resource.group_resource, attributes.name, str(error)) from None
        return match if holds else None
