"""The `authorizer` of expressions: may somebody do something?

Authorizers may have to wait and expressions cannot. An expression that asks what is not known yet is given up with
AnswerMissing; who runs it finds the answer out, notes it, and runs the expression again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from pilothouse.machinery.cel.interpreter.errors import EvaluationCancelled, EvaluationFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.validation.names import name_is_dns_label, name_is_dns_subdomain


@dataclass(frozen=True, slots=True)
class AccessSubject:
    """The user whose permissions are asked for."""

    user: Any = None
    """As the authorizer knows them."""
    service_account: tuple[str, str] | None = None
    """Namespace and name, when it is somebody else than the user."""


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """One question to an authorizer, about a path or about a resource."""

    subject: AccessSubject
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    cel_type = "kubernetes.authorization.Decision"

    allowed: bool
    reason: str = ""
    error: str | None = None


class AnswerMissing(EvaluationCancelled):
    def __init__(self, check: AccessCheck) -> None:
        super().__init__("an authorization check has not been answered yet")
        self.check = check


Ask: TypeAlias = Callable[[AccessCheck], AccessDecision]
"""Raises AnswerMissing."""


@dataclass(frozen=True, slots=True)
class AuthorizerValue:
    cel_type = "kubernetes.authorization.Authorizer"

    ask: Ask
    subject: AccessSubject

    def path(self, path: str) -> PathCheck:
        if not path.strip():
            raise EvaluationFailed("path must not be empty")
        return PathCheck(self, path)

    def group(self, group: str) -> GroupCheck:
        return GroupCheck(self, group)

    def service_account(self, namespace: str, name: str) -> AuthorizerValue:
        if name_is_dns_subdomain(name):
            raise EvaluationFailed("Invalid service account name")
        if name_is_dns_label(namespace):
            raise EvaluationFailed("Invalid service account namespace")
        return AuthorizerValue(self.ask, AccessSubject(service_account=(namespace, name)))


@dataclass(frozen=True, slots=True)
class PathCheck:
    cel_type = "kubernetes.authorization.PathCheck"

    authorizer: AuthorizerValue
    path: str

    def check(self, verb: str) -> AccessDecision:
        return self.authorizer.ask(AccessCheck(self.authorizer.subject, verb, path=self.path))


@dataclass(frozen=True, slots=True)
class GroupCheck:
    cel_type = "kubernetes.authorization.GroupCheck"

    authorizer: AuthorizerValue
    group: str

    def resource(self, resource: str) -> ResourceCheck:
        if not resource.strip():
            raise EvaluationFailed("resource must not be empty")
        return ResourceCheck(
            self.authorizer, AccessCheck(self.authorizer.subject, "", group=self.group, resource=resource)
        )


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    cel_type = "kubernetes.authorization.ResourceCheck"

    authorizer: AuthorizerValue
    asked: AccessCheck

    def narrowed(self, part: str, value: str) -> ResourceCheck:
        narrower: dict[str, Any] = {part: value}
        return ResourceCheck(self.authorizer, replace(self.asked, **narrower))

    def check(self, verb: str) -> AccessDecision:
        return self.authorizer.ask(replace(self.asked, verb=verb))
