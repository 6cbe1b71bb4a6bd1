"""The names of ClusterTrustBundles: they begin with the name of the signer, if there is one."""

from __future__ import annotations

from pilothouse.machinery.validation.object_names import name_is_dns_subdomain


def cluster_trust_bundle_name_problems(signer: str, name: str, prefix: bool) -> list[str]:
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return name_is_dns_subdomain(name, prefix)
    required = signer.replace("/", ":") + ":"
    if not name.startswith(required):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {required}"]
    return name_is_dns_subdomain(name.removeprefix(required), prefix)
