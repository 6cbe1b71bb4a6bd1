"""Defaults and validation of the spec of jobs and job templates, with generated labels and selectors."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.kube.batch import job_policies
from pilothouse.kube.validation.domains import domain_prefixed_path
from pilothouse.kube.validation.fields import nonnegative, one_of
from pilothouse.kube.validation.replicated_templates import validate_labels_match
from pilothouse.kube.validation.selectors import selector_of, shown_labels, shown_selector
from pilothouse.kube.workloads import default_pod_template, validate_template
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root, too_long
from pilothouse.machinery.objects import Json, items, labels_of, metadata, name_of, text, uid_of
from pilothouse.machinery.validation.labels import LabelSelectorRules, has_invalid_value, validate_label_selector

JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
CONTROLLER_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
CONTROLLER_UID = CONTROLLER_UID_LABELS[1]

INDEXED = "Indexed"
COMPLETIONS_SOFT_LIMIT = 100_000
PARALLELISM_SOFT_LIMIT = 10_000
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MAX_PARALLELISM = 100_000
_MAX_FAILED_INDEXES = 100_000
_MAX_MANAGED_BY = 63
_BACKOFF_LIMIT, _NO_BACKOFF_LIMIT = 6, 2**31 - 1
_LABELS = root("spec", "template", "metadata", "labels")
_NOT_GENERATED = "`selector` not auto-generated"


def default_job(job: Json) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _NO_BACKOFF_LIMIT if per_index else _BACKOFF_LIMIT)
    default_labels(job)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    default_job_template(spec)


def default_job_template(spec: Json) -> None:
    """Fill in the defaults of a job's spec, in a job or in the template of a cron job."""
    for rule in items(spec, "podFailurePolicy", "rules"):
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"
    default_pod_template(spec["template"])


def default_labels(job: Json) -> None:
    """Default the labels of a job to the labels of its template, including generated labels."""
    labels = labels_of(job["spec"]["template"])
    if labels and not labels_of(job):
        metadata(job)["labels"] = labels


def generate_selector(job: Json) -> None:
    """Generate a unique selector. User labels are kept; validation may reject them."""
    labels = metadata(job["spec"]["template"]).setdefault("labels", {})
    for key in JOB_NAME_LABELS:
        labels.setdefault(key, name_of(job))
    for key in CONTROLLER_UID_LABELS:
        labels.setdefault(key, uid_of(job))
    selector = job["spec"].setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid_of(job))


def validate_job_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    """Validate the spec of a job, including its selector."""
    yield from validate_job_template_spec(spec, path, old)
    selector = spec.get("selector")
    if selector is None:
        yield required(path.child("selector"))
    rules = LabelSelectorRules(allow_invalid_values=has_invalid_value((old or {}).get("selector")))
    yield from validate_label_selector(selector, path.child("selector"), rules)
    if (result := selector_of(selector)) is not None:
        yield from validate_labels_match(spec["template"], result, path.child("template"))


def validate_job_template_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    """Validate the spec of a job template, which has no selector."""
    for name in _COUNTS:
        yield from nonnegative(spec.get(name) or 0, path.child(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        yield from domain_prefixed_path(manager, path.child("managedBy"))
        if len(manager.encode()) > _MAX_MANAGED_BY:
            yield too_long(path.child("managedBy"), _MAX_MANAGED_BY)
    mode = spec.get("completionMode")
    if mode is not None:
        yield from one_of(mode, path.child("completionMode"), ("NonIndexed", INDEXED))
    if mode == INDEXED:
        completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
        failures = spec.get("maxFailedIndexes")
        if completions is None:
            yield required(path.child("completions"), f"when completion mode is {INDEXED}")
        if parallelism > _MAX_PARALLELISM:
            reason = f"must be less than or equal to {_MAX_PARALLELISM} when completion mode is {INDEXED}"
            yield invalid(path.child("parallelism"), parallelism, reason)
        if completions is not None and failures is not None and failures > completions:
            yield invalid(path.child("maxFailedIndexes"), failures, "must be less than or equal to completions")
        if failures is not None and failures > _MAX_FAILED_INDEXES:
            yield invalid(
                path.child("maxFailedIndexes"), failures, f"must be less than or equal to {_MAX_FAILED_INDEXES}"
            )
        if (completions or 0) > COMPLETIONS_SOFT_LIMIT and spec.get("backoffLimitPerIndex") is not None:
            yield from _validate_many_completions(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid(path.child(name), spec[name], "requires indexed completion mode")
    if spec.get("podFailurePolicy") is not None:
        yield from job_policies.validate_failure_policy(spec, path.child("podFailurePolicy"))
    success_policy_path = path.child("successPolicy")
    policy = spec.get("successPolicy")
    if policy is not None:
        if spec.get("completionMode") != INDEXED:
            yield invalid(
                success_policy_path, job_policies.shown_success_policy(policy), "requires indexed completion mode"
            )
        else:
            yield from job_policies.validate_success_policy(spec, success_policy_path)
    yield from job_policies.validate_replacement_policy(spec, path.child("podReplacementPolicy"))
    yield from validate_template(spec["template"], path.child("template"), old and old["template"])
    restart_policy_path = path.child("template", "spec", "restartPolicy")
    policy = text(spec, "template", "spec", "restartPolicy")
    # Always is the default for an unset policy.
    if policy in ("", "Always"):
        yield required(restart_policy_path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(restart_policy_path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(restart_policy_path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _validate_many_completions(spec: Json, path: Path) -> Errors:
    limit = PARALLELISM_SOFT_LIMIT
    reason = (
        f"must be less than or equal to {limit} when completions are above {COMPLETIONS_SOFT_LIMIT} "
        "and used with backoff limit per index"
    )
    if spec.get("maxFailedIndexes") is None:
        when = f"must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}"
        yield required(path.child("maxFailedIndexes"), when)
    for name in ("parallelism", "maxFailedIndexes"):
        if (spec.get(name) or 0) > limit:
            yield invalid(path.child(name), spec[name], reason)


def validate_generated_selector(job: Json, *, prefixed: bool = True) -> Errors:
    """`prefixed` also requires the labels with a domain, which jobs of older servers lack."""
    spec = job["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    expected = dict(_expected(job, 0))
    if prefixed:
        expected |= _expected(job, 1)
    for key, value in expected.items():
        labels = labels_of(spec["template"])
        if key not in labels:
            yield required(_LABELS.key(key), f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(_LABELS.key(key), shown_labels(labels), f"must be '{value}'")
    selector = selector_of(spec["selector"])
    if selector is not None and not selector.matches(expected):
        yield invalid(root("spec", "selector"), shown_selector(spec["selector"]), _NOT_GENERATED)


def has_prefixed_labels(job: Json) -> bool:
    labels = labels_of(job["spec"]["template"])
    return JOB_NAME_LABELS[1] in labels and CONTROLLER_UID_LABELS[1] in labels


def _expected(job: Json, form: int) -> Mapping[str, str]:
    """The labels without (0) or with (1) a domain."""
    return {CONTROLLER_UID_LABELS[form]: uid_of(job), JOB_NAME_LABELS[form]: name_of(job)}
