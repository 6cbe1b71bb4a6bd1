"""Resources used by controllers."""

from __future__ import annotations

from pilothouse.machinery import version_rules
from pilothouse.machinery.names import GroupVersionResource

CERTIFICATE_SIGNING_REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
CONTROLLER_REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
CUSTOM_RESOURCE_DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
DAEMON_SETS = GroupVersionResource("apps", "v1", "daemonsets")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
DEVICE_CLASSES = GroupVersionResource("resource.k8s.io", "v1", "deviceclasses")
ENDPOINTS = GroupVersionResource("", "v1", "endpoints")
ENDPOINT_SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
HORIZONTAL_POD_AUTOSCALERS = GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers")
INGRESSES = GroupVersionResource("networking.k8s.io", "v1", "ingresses")
IP_ADDRESSES = GroupVersionResource("networking.k8s.io", "v1", "ipaddresses")
JOBS = GroupVersionResource("batch", "v1", "jobs")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
LEASE_CANDIDATES = GroupVersionResource("coordination.k8s.io", "v1beta1", "leasecandidates")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
NODES = GroupVersionResource("", "v1", "nodes")
PERSISTENT_VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
PODS = GroupVersionResource("", "v1", "pods")
POD_DISRUPTION_BUDGETS = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
REPLICATION_CONTROLLERS = GroupVersionResource("", "v1", "replicationcontrollers")
REPLICA_SETS = GroupVersionResource("apps", "v1", "replicasets")
RESOURCE_CLAIMS = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = GroupVersionResource("resource.k8s.io", "v1", "resourceclaimtemplates")
SECRETS = GroupVersionResource("", "v1", "secrets")
SERVICES = GroupVersionResource("", "v1", "services")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
SERVICE_CIDRS = GroupVersionResource("networking.k8s.io", "v1", "servicecidrs")
STATEFUL_SETS = GroupVersionResource("apps", "v1", "statefulsets")
STORAGE_CLASSES = GroupVersionResource("storage.k8s.io", "v1", "storageclasses")
STORAGE_VERSION_MIGRATIONS = GroupVersionResource("storagemigration.k8s.io", "v1beta1", "storageversionmigrations")
_STABLE_MIGRATIONS = GroupVersionResource("storagemigration.k8s.io", "v1", "storageversionmigrations")
VOLUME_ATTRIBUTES_CLASSES = GroupVersionResource("storage.k8s.io", "v1", "volumeattributesclasses")


def in_release(resource: GroupVersionResource) -> GroupVersionResource:
    """Return the resource in the version that the controllers of this release use."""
    if resource == STORAGE_VERSION_MIGRATIONS and version_rules.holds("StableStorageVersionMigrations"):
        return _STABLE_MIGRATIONS
    return resource
