"""Pod templates of controllers: restart policy Always, without a deadline."""

from __future__ import annotations

from pilothouse.kube.validation.selectors import LABELS_DO_NOT_MATCH, shown_labels
from pilothouse.kube.workloads import validate_template
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported
from pilothouse.machinery.objects import Json, labels_of, part
from pilothouse.machinery.selectors.labels import Selector


def validate_replicated_template(
    template: Json, selector: Selector, path: Path, *, owner: str, old: Json | None = None
) -> Errors:
    """`owner` is the kind in messages."""
    if not selector.empty:
        yield from validate_labels_match(template, selector, path)
    yield from validate_template(template, path, old)
    yield from validate_runs_forever(template, path, owner)


def validate_labels_match(template: Json, selector: Selector, path: Path) -> Errors:
    if not selector.matches(labels_of(template)):
        shown = shown_labels(part(template, "metadata").get("labels"))
        yield invalid(path.child("metadata", "labels"), shown, LABELS_DO_NOT_MATCH)


def validate_runs_forever(template: Json, path: Path, owner: str) -> Errors:
    spec = template.get("spec") or {}
    if (policy := spec.get("restartPolicy") or "") != "Always":
        yield not_supported(path.child("spec", "restartPolicy"), policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        reason = f"activeDeadlineSeconds in {owner} is not Supported"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), reason)
