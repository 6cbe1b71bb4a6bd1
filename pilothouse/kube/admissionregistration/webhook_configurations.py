"""ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from pilothouse.apiserver.admission.matching import REVIEWS
from pilothouse.apiserver.registry.table import Column, count
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.admissionregistration import match_resources
from pilothouse.kube.admissionregistration.strategy import AdmissionRegistrationStrategy, resource_of
from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain
from pilothouse.machinery.validation.webhook_clients import default_client_config, validate_client_config

_REVIEW_VERSIONS = ("v1", "v1beta1")

_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")

_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")

_DEFAULT_TIMEOUT = 10


class ValidatingWebhookStrategy(AdmissionRegistrationStrategy):
    content = "webhooks"
    mutating: ClassVar[bool] = False

    def default(self, obj: Json) -> None:
        for hook in items(obj, "webhooks"):
            default_webhook(hook, mutating=self.mutating)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        """Compare strictly: upstream distinguishes empty from missing fields in webhooks."""
        return bool(obj.get("webhooks") != old.get("webhooks"))

    def validate_configuration(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_webhooks(items(obj, "webhooks"), STRICT, mutating=self.mutating)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata(obj)
        new = items(obj, "webhooks")
        yield from validate_webhooks(new, leniency(new, items(old, "webhooks")), mutating=self.mutating)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        yield from super().warnings_on_create(obj)
        yield from _warnings_about_reviews(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        yield from super().warnings_on_update(obj, old)
        yield from _warnings_about_reviews(obj)


def _warnings_about_reviews(obj: Json) -> Iterable[str]:
    """Yield a warning for each review in a rule; webhooks are not called for reviews."""
    if not enabled("ExcludeAdmissionWebhookVirtualResources"):
        return
    for position, hook in enumerate(items(obj, "webhooks")):
        for index, rule in enumerate(items(hook, "rules")):
            groups, resources = items(rule, "apiGroups"), items(rule, "resources")
            if "*" in groups or "*" in resources:
                continue
            named = dict.fromkeys((group, resource) for group in groups for resource in resources)
            path = root("webhooks").index(position).child("rules").index(index)
            for group, resource in (name for name in named if name in REVIEWS):
                yield f"{path}: {resource}.{group} is excluded from admission webhooks; this rule will have no effect"


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    mutating = True


_COLUMNS = [
    Column(
        "Webhooks",
        count("webhooks"),
        type="integer",
        description="Webhooks indicates the number of webhooks registered in this configuration",
    ),
]

VALIDATING_WEBHOOK_CONFIGURATIONS = resource_of(
    "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", ValidatingWebhookStrategy(), _COLUMNS
)

MUTATING_WEBHOOK_CONFIGURATIONS = resource_of(
    "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", MutatingWebhookStrategy(), _COLUMNS
)


@dataclass(frozen=True, slots=True)
class Leniency:
    """Rules that an update may break because the stored object breaks them."""

    match_conditions: bool = False
    side_effects: bool = False
    review_versions: bool = False
    same_names: bool = False
    label_values: bool = False


STRICT = Leniency()


def leniency(new: Sequence[Json], old: Sequence[Json]) -> Leniency:
    names = [text(hook, "name") for hook in old]
    return Leniency(
        match_conditions=(
            len(new) == len(old)
            and all(
                semantically_equal(a.get("matchConditions"), b.get("matchConditions"))
                for a, b in zip(new, old, strict=True)
            )
        ),
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in old),
        review_versions=any(_unknown_versions(items(hook, "admissionReviewVersions")) for hook in old),
        same_names=len(set(names)) < len(names),
        label_values=any(
            any(True for field in match_resources.SELECTORS for _ in validate_label_selector(hook.get(field), root()))
            for hook in old
        ),
    )


def _unknown_versions(versions: Sequence[str]) -> bool:
    return bool(versions) and not set(versions) & set(_REVIEW_VERSIONS)


def default_webhook(hook: Json, *, mutating: bool) -> None:
    if hook.get("failurePolicy") is None:
        hook["failurePolicy"] = "Fail"
    match_resources.default_selection(hook)
    if hook.get("timeoutSeconds") is None:
        hook["timeoutSeconds"] = _DEFAULT_TIMEOUT
    if mutating and hook.get("reinvocationPolicy") is None:
        hook["reinvocationPolicy"] = "Never"
    default_client_config(part(hook, "clientConfig"))
    match_resources.default_rules(items(hook, "rules"))


def validate_webhooks(hooks: Sequence[Json], may: Leniency, *, mutating: bool) -> Errors:
    seen: set[str] = set()
    for position, hook in enumerate(hooks):
        path, name = root("webhooks").index(position), text(hook, "name")
        yield from _validate_webhook(hook, path, may, mutating=mutating)
        versions = items(hook, "admissionReviewVersions")
        yield from _validate_review_versions(versions, path.child("admissionReviewVersions"), may)
        if name and name in seen and not may.same_names:
            yield duplicate(path.child("name"), name)
        seen.add(name)


def _validate_webhook(hook: Json, path: Path, may: Leniency, *, mutating: bool) -> Errors:
    name = text(hook, "name")
    name_path = path.child("name")
    if not name:
        yield required(name_path)
    elif problems := is_dns1123_subdomain(name):
        yield invalid(name_path, name, ",".join(problems))
    elif name.count(".") < 2:
        yield invalid(name_path, name, "should be a domain with at least three segments separated by dots")
    for position, rule in enumerate(items(hook, "rules")):
        yield from match_resources.validate_rule(rule, path.child("rules").index(position))
    for field, supported in (
        ("failurePolicy", match_resources.FAILURE_POLICIES),
        ("matchPolicy", match_resources.MATCH_POLICIES),
    ):
        if hook.get(field) is not None:
            yield from one_of(hook[field], path.child(field), supported)
    effects = hook.get("sideEffects")
    side_effects_path = path.child("sideEffects")
    allowed = _SIDE_EFFECTS if may.side_effects else _NO_SIDE_EFFECTS
    if effects is None:
        yield required(side_effects_path, f"must specify one of {', '.join(allowed)}")
    elif effects not in allowed:
        yield not_supported(side_effects_path, effects, allowed)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        yield invalid(path.child("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds")
    for field in match_resources.SELECTORS:
        rules = LabelSelectorRules(allow_invalid_values=may.label_values)
        yield from validate_label_selector(hook.get(field), path.child(field), rules)
    if mutating and hook.get("reinvocationPolicy") is not None:
        yield from one_of(
            hook["reinvocationPolicy"], path.child("reinvocationPolicy"), match_resources.REINVOCATION_POLICIES
        )
    yield from validate_client_config(part(hook, "clientConfig"), path.child("clientConfig"))
    if not may.match_conditions:
        conditions = items(hook, "matchConditions")
        if conditions:
            # Imported with the first condition: a start needs no expressions.
            from pilothouse.kube.admissionregistration.policy_contents import validate_match_conditions

            yield from validate_match_conditions(conditions, path.child("matchConditions"), params=False)


def _validate_review_versions(versions: Sequence[str], path: Path, may: Leniency) -> Errors:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    seen: set[str] = set()
    for position, version in enumerate(versions):
        if version in seen:
            yield invalid(path.index(position), version, "duplicate version")
            continue
        seen.add(version)
        for problem in is_dns1035_label(version):
            yield invalid(path.index(position), version, problem)
    if _unknown_versions(versions) and not may.review_versions:
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
