"""Admission and conversion webhooks as methods of a reconciler: declarations.

    class BackupReconciler(Reconciler[Backup]):
        @mutating
        def default(self, backup: Backup) -> None:                         # the changes become a JSON patch
            backup.keep = backup.keep or 7

        @validating(operations=["UPDATE"], failure_policy="Ignore")
        def check(self, backup: Backup, old: Backup) -> Errors:            # each error becomes a cause of a 422
            if backup.volume != old.volume:
                yield forbidden("spec.volume", "field is immutable")

        @converting(from_="v1alpha1", to="v1")
        def upgrade(self, backup: Json) -> Json: ...

`reviews.py` is the protocol, and `webhook_server.py` serves it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, overload

from pilothouse.builder.resource import plural_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.operator.kinds import AnyKind, gvk_of, kind_of
from pilothouse.operator.reconciler import Reconciler, kind_of_reconciler
from pilothouse.operator.types import BuiltinKind

F = TypeVar("F", bound=Callable[..., Any])
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]
FailurePolicy = Literal["Fail", "Ignore"]
REGISTRATION = "admissionregistration.k8s.io"
CONVERT_PATH = "/convert"
_DECLARED = "__webhook__"


class Denied(PilothouseError):
    """Raised by a handler to deny the request with this message, status code and reason.

    >>> from pilothouse.operator import Denied
    >>> Denied("backups are closed").code
    403
    """

    def __init__(self, message: str, *, code: int = 403, reason: str = "Forbidden") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """The request that a webhook reviews. A handler with a parameter `request` receives it.

    >>> from pilothouse.operator import AdmissionRequest
    >>> request = AdmissionRequest({"uid": "1", "operation": "CREATE", "userInfo": {"username": "ann"}})
    >>> request.warn("spec.keep is deprecated")
    >>> request.operation, request.user, request.warnings
    ('CREATE', 'ann', ['spec.keep is deprecated'])
    """

    json: Json
    """The `request` of the AdmissionReview."""
    warnings: list[str] = field(default_factory=list)
    audit_annotations: dict[str, str] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        """CREATE, UPDATE, DELETE or CONNECT."""
        return str(self.json.get("operation") or "")

    @property
    def user(self) -> str:
        """Name of the user who sent the request."""
        return str((self.json.get("userInfo") or {}).get("username") or "")

    @property
    def groups(self) -> list[str]:
        """Groups of the user."""
        return list((self.json.get("userInfo") or {}).get("groups") or ())

    @property
    def subresource(self) -> str:
        """Subresource of the request; empty for the object itself."""
        return str(self.json.get("subResource") or "")

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored."""
        return bool(self.json.get("dryRun"))

    def warn(self, text: str) -> None:
        """Add a warning to the response. Clients such as kubectl print warnings."""
        self.warnings.append(text)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Address and certificate of the webhooks that a manager serves.

    With a `service`, the manager makes a certificate for the Service, keeps its CA in a Secret, and writes the CA into
    the webhook configurations. Without a service, the manager creates the configurations with its own URL, as tests and
    development need it. With `certificate` and `key`, the manager makes nothing, and publishes `ca` if given.

    >>> from pilothouse.operator import WebhookOptions
    >>> WebhookOptions(service="demo/backup-operator").port
    9443
    """

    service: str = ""
    """NAMESPACE/NAME of the Service in front of the manager."""
    host: str = "0.0.0.0"
    port: int = 9443
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    @classmethod
    def of(cls, address: CertifiedAddress) -> WebhookOptions:
        """Return the options for the address of a test: the fixture `pilothouse_webhooks`."""
        return cls("", address.host, address.port, address.certificate, address.key, address.ca)


class CertifiedAddress(Protocol):
    """An address with certificate files, such as `pilothouse_webhooks`."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def certificate(self) -> Path: ...
    @property
    def key(self) -> Path: ...
    @property
    def ca(self) -> Path: ...


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """Declaration of an admission webhook; the names are those of the webhook configurations."""

    type: Literal["mutating", "validating"]
    kind: AnyKind | None = None
    """A kind class, or a text such as "v1 Pod"; None: the kind of the reconciler."""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    subresources: tuple[str, ...] = ()
    failure_policy: str = "Fail"
    timeout_seconds: int = 10
    side_effects: str = "None"
    match_policy: str = "Equivalent"
    reinvocation_policy: str = "Never"
    namespace_selector: Mapping[str, Any] | None = None
    object_selector: Mapping[str, Any] | None = None
    match_conditions: Mapping[str, str] = field(default_factory=dict)
    """name -> CEL expression"""


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """Declaration of a conversion between two versions, named as versions or given as kind classes."""

    from_: str | type[Any]
    to: str | type[Any]


@overload
def validating(method: F, /) -> F: ...
@overload
def validating(
    *,
    kind: AnyKind | None = None,
    operations: Sequence[Operation] = ("CREATE", "UPDATE"),
    subresources: Sequence[str] = (),
    failure_policy: FailurePolicy = "Fail",
    timeout_seconds: int = 10,
    side_effects: Literal["None", "NoneOnDryRun"] = "None",
    match_policy: Literal["Equivalent", "Exact"] = "Equivalent",
    namespace_selector: Mapping[str, Any] | None = None,
    object_selector: Mapping[str, Any] | None = None,
    match_conditions: Mapping[str, str] | None = None,
) -> Callable[[F], F]: ...
def validating(method: Any = None, /, **options: Any) -> Any:
    """Declare a method as a validating webhook.

    The method receives the object (on DELETE, the deleted object), and, if it has parameters of these names, `old` (the
    replaced object, or None) and `request` (the `AdmissionRequest`). It denies the request by raising `Denied` or an
    API error, or by returning or yielding field errors. The method may be async. A reconciler without `reconcile` only
    serves its webhooks.

    >>> from pilothouse.operator import Reconciler, validating
    >>> from pilothouse.builder import required
    >>> class Pods(Reconciler[dict]):
    ...     kind = "v1 Pod"
    ...
    ...     @validating(operations=["CREATE"])
    ...     def needs_labels(self, pod):
    ...         if not pod["metadata"].get("labels"):
    ...             yield required("metadata.labels")
    """
    return _declare(method, "validating", options)


@overload
def mutating(method: F, /) -> F: ...
@overload
def mutating(
    *,
    kind: AnyKind | None = None,
    operations: Sequence[Operation] = ("CREATE", "UPDATE"),
    subresources: Sequence[str] = (),
    failure_policy: FailurePolicy = "Fail",
    timeout_seconds: int = 10,
    side_effects: Literal["None", "NoneOnDryRun"] = "None",
    match_policy: Literal["Equivalent", "Exact"] = "Equivalent",
    reinvocation_policy: Literal["Never", "IfNeeded"] = "Never",
    namespace_selector: Mapping[str, Any] | None = None,
    object_selector: Mapping[str, Any] | None = None,
    match_conditions: Mapping[str, str] | None = None,
) -> Callable[[F], F]: ...
def mutating(method: Any = None, /, **options: Any) -> Any:
    """Declare a method as a mutating webhook. The method changes the object in place, or returns another object.

    Its parameters and denials are those of `validating`.

    >>> from pilothouse.operator import Reconciler, mutating
    >>> class Pods(Reconciler[dict]):
    ...     kind = "v1 Pod"
    ...
    ...     @mutating(failure_policy="Ignore")
    ...     def label(self, pod, request):
    ...         pod["metadata"].setdefault("labels", {})["created-by"] = request.user
    """
    return _declare(method, "mutating", options)


def _declare(method: Any, type_: Literal["mutating", "validating"], options: dict[str, Any]) -> Any:
    for name in ("operations", "subresources"):
        if name in options:
            options[name] = tuple(options[name])
    if options.get("match_conditions") is None:
        options.pop("match_conditions", None)
    declared = AdmissionOptions(type_, **options)

    def decorate(function: F) -> F:
        setattr(function, _DECLARED, declared)
        return function

    return decorate if method is None else decorate(method)


def converting(*, from_: str | type[Any], to: str | type[Any]) -> Callable[[F], F]:
    """Declare a method that converts an object between two versions of the reconciler's kind.

    A version name ("v1alpha1") passes dicts, a kind class passes instances. The method returns the converted object;
    metadata is kept, except that labels and annotations of a returned dict replace the original's. Versions without a
    direct conversion are converted over others.

    >>> from pilothouse.operator import Reconciler, converting
    >>> class Backups(Reconciler[dict]):
    ...     kind = "demo.example.com/v1 Backup"
    ...
    ...     @converting(from_="v1alpha1", to="v1")
    ...     def upgrade(self, backup):
    ...         return {**backup, "spec": {"schedule": backup["spec"]["cron"]}}
    """

    def decorate(function: F) -> F:
        setattr(function, _DECLARED, ConversionOptions(from_, to))
        return function

    return decorate


def declared_methods(cls: type[Any]) -> Iterator[tuple[str, AdmissionOptions | ConversionOptions]]:
    """Yield the declared methods of a class in the order of definition, base classes first."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    for name in names:
        declared = getattr(inspect.getattr_static(cls, name), _DECLARED, None)
        if declared is not None:
            yield name, declared


def admission_webhooks(reconciler: type[Reconciler[Any]]) -> list[AdmissionWebhook]:
    """Return the admission webhooks of a reconciler. Raises TypeError and ValueError for an unusable kind."""
    found = []
    for name, options in declared_methods(reconciler):
        if isinstance(options, AdmissionOptions):
            kind = options.kind or kind_of_reconciler(reconciler)
            gvk = gvk_of(kind)
            found.append(AdmissionWebhook(name, options, gvk.group, gvk.version, gvk.kind, plural_of_kind(kind)))
    return found


def conversions(reconciler: type[Reconciler[Any]]) -> dict[tuple[str, str], tuple[str, ConversionOptions]]:
    """Return the conversions of a reconciler: (from, to) -> (method, declaration)."""
    return {
        (_version(options.from_), _version(options.to)): (name, options)
        for name, options in declared_methods(reconciler)
        if isinstance(options, ConversionOptions)
    }


def conversion_kinds(reconciler: type[Reconciler[Any]]) -> Iterator[type[Any]]:
    """Yield the classes between which the reconciler converts."""
    for _, options in conversions(reconciler).values():
        yield from (version for version in (options.from_, options.to) if isinstance(version, type))


def has_webhooks(reconciler: type[Reconciler[Any]]) -> bool:
    """Whether the reconciler declares webhooks or conversions."""
    return next(declared_methods(reconciler), None) is not None


def is_webhooks_only(reconciler: type[Reconciler[Any]]) -> bool:
    """Whether the class has webhooks and no `reconcile`: a manager serves the webhooks, and watches nothing."""
    return reconciler.reconcile is Reconciler.reconcile and has_webhooks(reconciler)


def plural_of_kind(kind: AnyKind) -> str:
    """Return the resource of a kind. The resource of a kind without a class is its regular plural."""
    if isinstance(kind, type):
        return kind.PLURAL if issubclass(kind, BuiltinKind) else kind_of(kind).plural
    name = gvk_of(kind).kind
    return "endpoints" if name == "Endpoints" else plural_of(name)


def definition_name(kind: AnyKind) -> str:
    """Return the name of the kind's CustomResourceDefinition."""
    return f"{plural_of_kind(kind)}.{gvk_of(kind).group}"


def _version(version: str | type[Any]) -> str:
    return version if isinstance(version, str) else gvk_of(version).version


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """A declared admission webhook and the resource that it reviews."""

    method: str
    options: AdmissionOptions
    group: str
    version: str
    kind: str
    plural: str

    @property
    def name(self) -> str:
        """Name in the configuration, such as check-schedule.backups.demo.example.com."""
        return f"{_dashed(self.method)}.{self.plural}.{self.group or 'core.k8s.io'}"

    @property
    def path(self) -> str:
        """Path of the endpoint: the path that controller-runtime has for the kind, and the method."""
        verb = "mutate" if self.options.type == "mutating" else "validate"
        return f"/{verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}/{_dashed(self.method)}"

    def declared(self, client_config: Json) -> Json:
        """Return the webhook as an item of a webhook configuration."""
        options = self.options
        resources = [f"{self.plural}/{name}" for name in options.subresources] or [self.plural]
        rule = {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "operations": list(options.operations),
            "resources": resources,
            "scope": "*",
        }
        out: Json = {
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client_config,
            "failurePolicy": options.failure_policy,
            "matchPolicy": options.match_policy,
            "rules": [rule],
            "sideEffects": options.side_effects,
            "timeoutSeconds": options.timeout_seconds,
        }
        if options.type == "mutating":
            out["reinvocationPolicy"] = options.reinvocation_policy
        if options.namespace_selector is not None:
            out["namespaceSelector"] = dict(options.namespace_selector)
        if options.object_selector is not None:
            out["objectSelector"] = dict(options.object_selector)
        if options.match_conditions:
            conditions = options.match_conditions.items()
            out["matchConditions"] = [{"name": name, "expression": expression} for name, expression in conditions]
        return out


def webhook_configurations(
    name: str, webhooks: Iterable[AdmissionWebhook], client_config: Callable[[str], Json]
) -> list[Json]:
    """Return the webhook configurations of this name. `client_config` returns the clientConfig of a path."""
    out = []
    for type_, kind in (("mutating", "MutatingWebhookConfiguration"), ("validating", "ValidatingWebhookConfiguration")):
        items = [hook.declared(client_config(hook.path)) for hook in webhooks if hook.options.type == type_]
        if items:
            meta = {"name": name}
            out.append({"apiVersion": f"{REGISTRATION}/v1", "kind": kind, "metadata": meta, "webhooks": items})
    return out


def conversion_of(client_config: Json) -> Json:
    """Return the `spec.conversion` of a CustomResourceDefinition whose versions a webhook converts."""
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client_config, "conversionReviewVersions": ["v1"]},
    }


def _dashed(name: str) -> str:
    return name.strip("_").replace("_", "-").lower()
