"""What users may do is the cluster's answer to a SubjectAccessReview, as upstream's delegated authorizer has it."""

from __future__ import annotations

from pilothouse.apiserver.authz.always import AlwaysAllowPaths, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.apiserver.authz.webhook.authorizer import WebhookAuthorizer, WebhookConfig
from pilothouse.builder.delegation.reviews import subject_access_reviews
from pilothouse.client.rest.client import Client

_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_REMEMBERED_SECONDS = 10.0
_CONFIG = WebhookConfig("", authorized_ttl=_REMEMBERED_SECONDS, unauthorized_ttl=_REMEMBERED_SECONDS)


def delegated_authorizer(client: Client) -> Authorizer:
    """Return an authorizer that asks the client's cluster, and remembers each answer for ten seconds.

    Members of system:masters may do everything and everybody may ask whether the server is well, without a review. A
    cluster that does not answer allows nothing: the request fails with 500 and the cluster's error, and the next one
    asks again. The client needs the ClusterRole system:auth-delegator; every request waits for it, so its rate is best
    not limited.
    """
    cluster = WebhookAuthorizer(subject_access_reviews(client), _CONFIG)
    return UnionAuthorizer([PrivilegedGroup(), AlwaysAllowPaths(_HEALTH), cluster])
