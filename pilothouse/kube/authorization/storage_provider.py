"""The storages of authorization.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.authorization import access_reviews
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served_review
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion

_V1 = GroupVersion(access_reviews.GROUP, "v1")


@dataclass(frozen=True, slots=True)
class AuthorizationStorageProvider:
    authorizer: Authorizer

    def open(self, registries: Registries) -> APIGroup:
        local = access_reviews.LocalSubjectAccessReviews(self.authorizer)
        resources = [
            served_review(_V1, "SubjectAccessReview", access_reviews.SubjectAccessReviews(self.authorizer)),
            served_review(_V1, "SelfSubjectAccessReview", access_reviews.SelfSubjectAccessReviews(self.authorizer)),
            served_review(_V1, "SelfSubjectRulesReview", access_reviews.SelfSubjectRulesReviews(self.authorizer)),
            served_review(_V1, "LocalSubjectAccessReview", local, namespaced=True),
        ]
        return APIGroup(access_reviews.GROUP, [APIVersion(_V1, resources)])
