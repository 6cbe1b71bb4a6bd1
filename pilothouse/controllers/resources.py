"""The resources that controllers work with."""

from __future__ import annotations

from pilothouse.machinery.names import GroupVersionResource

CERTIFICATE_SIGNING_REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
DEVICE_CLASSES = GroupVersionResource("resource.k8s.io", "v1", "deviceclasses")
ENDPOINTS = GroupVersionResource("", "v1", "endpoints")
ENDPOINT_SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
HORIZONTAL_POD_AUTOSCALERS = GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers")
JOBS = GroupVersionResource("batch", "v1", "jobs")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
LEASE_CANDIDATES = GroupVersionResource("coordination.k8s.io", "v1beta1", "leasecandidates")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
NODES = GroupVersionResource("", "v1", "nodes")
PERSISTENT_VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
PODS = GroupVersionResource("", "v1", "pods")
POD_DISRUPTION_BUDGETS = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
REPLICA_SETS = GroupVersionResource("apps", "v1", "replicasets")
SECRETS = GroupVersionResource("", "v1", "secrets")
SERVICES = GroupVersionResource("", "v1", "services")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
