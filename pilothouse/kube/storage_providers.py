"""The groups under /apis, in the order in which they are installed."""

from __future__ import annotations

from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.kube.admissionregistration.storage_provider import AdmissionRegistrationStorageProvider
from pilothouse.kube.apiserverinternal.storage_provider import APIServerInternalStorageProvider
from pilothouse.kube.apps.storage_provider import AppsStorageProvider
from pilothouse.kube.authentication.storage_provider import AuthenticationStorageProvider
from pilothouse.kube.authorization.storage_provider import AuthorizationStorageProvider
from pilothouse.kube.autoscaling.storage_provider import AutoscalingStorageProvider
from pilothouse.kube.batch.storage_provider import BatchStorageProvider
from pilothouse.kube.certificates.storage_provider import CertificatesStorageProvider
from pilothouse.kube.coordination.storage_provider import CoordinationStorageProvider
from pilothouse.kube.discovery.storage_provider import DiscoveryStorageProvider
from pilothouse.kube.events.storage_provider import EventsStorageProvider
from pilothouse.kube.flowcontrol.storage_provider import FlowControlStorageProvider
from pilothouse.kube.networking.storage_provider import NetworkingStorageProvider
from pilothouse.kube.node.storage_provider import NodeStorageProvider
from pilothouse.kube.policy.storage_provider import PolicyStorageProvider
from pilothouse.kube.rbac.authorizer.policy import RBACPolicy
from pilothouse.kube.rbac.storage_provider import RBACStorageProvider
from pilothouse.kube.resource.storage_provider import ResourceStorageProvider
from pilothouse.kube.scheduling.storage_provider import SchedulingStorageProvider
from pilothouse.kube.served import RESTStorageProvider
from pilothouse.kube.storage.storage_provider import StorageStorageProvider
from pilothouse.kube.storagemigration.storage_provider import StorageMigrationStorageProvider

STORAGE_PROVIDERS: tuple[RESTStorageProvider, ...] = (
    APIServerInternalStorageProvider(),
    AppsStorageProvider(),
    AutoscalingStorageProvider(),
    BatchStorageProvider(),
    CoordinationStorageProvider(),
    DiscoveryStorageProvider(),
    EventsStorageProvider(),
    NetworkingStorageProvider(),
    PolicyStorageProvider(),
    NodeStorageProvider(),
    SchedulingStorageProvider(),
    StorageStorageProvider(),
    StorageMigrationStorageProvider(),
)


def storage_providers(generic: GenericConfig, policy: RBACPolicy) -> tuple[RESTStorageProvider, ...]:
    """All of them. The first ask what the server itself knows of its users."""
    return (
        AuthenticationStorageProvider(generic.tokens, generic.api_audiences),
        AuthorizationStorageProvider(generic.authorizer),
        AdmissionRegistrationStorageProvider(generic.authorizer),
        ResourceStorageProvider(generic.authorizer),
        RBACStorageProvider(generic.authorizer, policy),
        CertificatesStorageProvider(generic.authorizer),
        *STORAGE_PROVIDERS,
        FlowControlStorageProvider(generic.flow_control),
    )
