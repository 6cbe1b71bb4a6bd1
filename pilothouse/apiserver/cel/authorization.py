"""The authorizer as expressions see it: each question is asked once for a request."""

from __future__ import annotations

from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision
from pilothouse.machinery.cel.authorizer import (
    AccessCheck,
    AccessDecision,
    AccessSubject,
    AnswerMissing,
    AuthorizerValue,
    ResourceCheck,
)


class Authorizations:
    def __init__(self, authorizer: Authorizer, user: User) -> None:
        self._authorizer = authorizer
        self._answers: dict[AccessCheck, AccessDecision] = {}
        self.value = AuthorizerValue(self._known, AccessSubject(user))
        """The value of the variable `authorizer`."""

    def for_resource(self, *, group: str, resource: str, subresource: str, namespace: str, name: str) -> ResourceCheck:
        """Return the value of `authorizer.requestResource`."""
        asked = AccessCheck(
            self.value.subject,
            "",
            group=group,
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=name,
        )
        return ResourceCheck(self.value, asked)

    def _known(self, check: AccessCheck) -> AccessDecision:
        answer = self._answers.get(check)
        if answer is None:
            raise AnswerMissing(check)
        return answer

    async def find_out(self, check: AccessCheck) -> None:
        try:
            answer = await self._authorizer.authorize(_attributes(check))
        except Exception as error:  # an authorizer that fails is something that expressions can ask about
            self._answers[check] = AccessDecision(allowed=False, error=str(error))
        else:
            allowed = answer.decision is Decision.ALLOW
            self._answers[check] = AccessDecision(allowed=allowed, reason=answer.reason, error=answer.error or None)


def _attributes(check: AccessCheck) -> Attributes:
    if check.path:
        return Attributes(user=_user(check.subject), verb=check.verb, path=check.path)
    return Attributes(
        user=_user(check.subject),
        verb=check.verb,
        is_resource=True,
        group=check.group,
        version="*",
        resource=check.resource,
        subresource=check.subresource,
        namespace=check.namespace,
        name=check.name,
        field_selector=check.field_selector,
        label_selector=check.label_selector,
    )


def _user(subject: AccessSubject) -> User:
    if subject.service_account is None:
        assert isinstance(subject.user, User)
        return subject.user
    namespace, name = subject.service_account
    return User(user_name(namespace, name), groups=(*group_names(namespace), ALL_AUTHENTICATED))
