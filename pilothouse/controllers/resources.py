"""The resources that controllers work with."""

from __future__ import annotations

from pilothouse.machinery.names import GroupVersionResource

CERTIFICATE_SIGNING_REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
PODS = GroupVersionResource("", "v1", "pods")
SECRETS = GroupVersionResource("", "v1", "secrets")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
