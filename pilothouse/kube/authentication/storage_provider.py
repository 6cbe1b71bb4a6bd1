"""The storages of authentication.k8s.io."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.interface import TokenAuthenticator
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.authentication.self_subject_reviews import SelfSubjectReviews
from pilothouse.kube.authentication.token_reviews import TokenReviews
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served_review
from pilothouse.machinery.names import GroupVersion

GROUP = "authentication.k8s.io"

_V1 = GroupVersion(GROUP, "v1")


class AuthenticationStorageProvider:
    def __init__(self, tokens: TokenAuthenticator, audiences: Sequence[str]) -> None:
        self._tokens = tokens
        self._audiences = audiences

    def open(self, registries: Registries) -> APIGroup:
        resources = [
            served_review(_V1, "TokenReview", TokenReviews(self._tokens, self._audiences)),
            served_review(_V1, "SelfSubjectReview", SelfSubjectReviews()),
        ]
        return APIGroup(GROUP, [APIVersion(_V1, resources)])
