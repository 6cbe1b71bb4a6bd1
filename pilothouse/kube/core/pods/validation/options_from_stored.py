"""Options for the validation of updates: faults of the stored pod or template are tolerated."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kinds.pods import all_containers, is_sidecar
from pilothouse.kube.core.pods.container_statuses import all_could_restart
from pilothouse.kube.core.pods.validation.container_resources import is_divisible
from pilothouse.kube.core.pods.validation.options import PodValidationOptions, new_template_options
from pilothouse.kube.core.pods.validation.pod import has_valid_deletion_cost
from pilothouse.kube.core.pods.validation.scheduling import (
    PREFERRED,
    REQUIRED,
    validate_label_keys,
    validate_term_selectors,
)
from pilothouse.kube.core.pods.validation.security_context import host_sysctl_problem
from pilothouse.kube.validation.fields import local_non_reserved_path
from pilothouse.kube.validation.resource_names import is_huge_page
from pilothouse.kube.validation.selectors import has_invalid_values
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.labels import validate_label_selector


def options_for_template(old: Json | None) -> PodValidationOptions:
    return new_template_options() if old is None else _options(old, resource_is_pod=False)


def options_for_pod(old: Json) -> PodValidationOptions:
    return _options(old, resource_is_pod=True)


def _options(old: Json, *, resource_is_pod: bool) -> PodValidationOptions:
    spec = old.get("spec") or {}
    context, constraints = spec.get("securityContext") or {}, spec.get("topologySpreadConstraints") or ()
    affinity = spec.get("affinity") or {}
    has_own_users = spec.get("hostUsers") is False
    new = new_template_options()
    return PodValidationOptions(
        resource_is_pod=resource_is_pod,
        allow_invalid_deletion_cost=new.allow_invalid_deletion_cost or not has_valid_deletion_cost(annotations_of(old)),
        allow_invalid_selector_values=any(
            True
            for term in _pod_affinity_terms(affinity)
            for _ in validate_term_selectors(term, Path(), allow_invalid_values=False)
        ),
        allow_invalid_node_affinity_values=has_invalid_values((affinity.get("nodeAffinity") or {}).get(REQUIRED)),
        allow_invalid_topology_spread_selector=any(
            any(validate_label_selector(constraint.get("labelSelector"), Path())) for constraint in constraints
        ),
        allow_legacy_match_label_keys=new.allow_legacy_match_label_keys or any(map(_has_bad_label_keys, constraints)),
        allow_indivisible_huge_pages=any(map(_has_indivisible_huge_pages, all_containers(spec))),
        allow_non_local_token_path=any(
            True for path in _token_paths(spec) for _ in local_non_reserved_path(path, Path())
        ),
        allow_namespaced_sysctls_on_host=any(
            host_sysctl_problem(sysctl.get("name") or "", spec) for sysctl in context.get("sysctls") or ()
        ),
        allow_any_selinux_change_policy=new.allow_any_selinux_change_policy
        or context.get("seLinuxChangePolicy") is not None,
        allow_restart_container_for_init=any(map(_restarts_for_resize, spec.get("initContainers") or ())),
        allow_user_namespaces_with_devices=has_own_users
        and any(container.get("volumeDevices") for container in all_containers(spec)),
        allow_user_namespaces_on_host_network=new.allow_user_namespaces_on_host_network
        or (has_own_users and bool(spec.get("hostNetwork"))),
        allow_comparing_tolerations=new.allow_comparing_tolerations
        or any(toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ()),
        allow_empty_image_reference=version_rules.holds("ImagesOfTemplates")
        and any(map(_lacks_image, spec.get("volumes") or ())),
        allow_system_admin_without_escalation=version_rules.holds("KeptPrivileges")
        and any(map(_is_admin_without_escalation, all_containers(spec))),
        allow_restart_all_containers=new.allow_restart_all_containers or all_could_restart(spec),
    )


def _pod_affinity_terms(affinity: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        yield from pods.get(REQUIRED) or ()
        yield from (weighted.get("podAffinityTerm") or {} for weighted in pods.get(PREFERRED) or ())


def _has_bad_label_keys(constraint: Json) -> bool:
    keys = constraint.get("matchLabelKeys") or ()
    return any(True for _ in validate_label_keys(Path(), constraint.get("labelSelector"), match=keys))


def _has_indivisible_huge_pages(container: Json) -> bool:
    resources = container.get("resources") or {}
    return any(
        is_huge_page(name) and not is_divisible(name, text)
        for kind in ("limits", "requests")
        for name, text in (resources.get(kind) or {}).items()
    )


def _token_paths(spec: Json) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (token := source.get("serviceAccountToken")) is not None:
                yield token.get("path") or ""


def _lacks_image(volume: Json) -> bool:
    image = volume.get("image")
    return image is not None and not image.get("reference")


def _is_admin_without_escalation(container: Json) -> bool:
    context = container.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or ()
    return not context.get("allowPrivilegeEscalation") and "CAP_SYS_ADMIN" in added


def _restarts_for_resize(container: Json) -> bool:
    policies = container.get("resizePolicy") or ()
    return not is_sidecar(container) and any(policy.get("restartPolicy") == "RestartContainer" for policy in policies)
