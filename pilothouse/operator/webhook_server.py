"""Serves the webhooks of an operator over HTTPS, with certificates that are made, renewed and published.

In a cluster a Secret holds the CA, so that all replicas share it; the server writes the CA into the `caBundle` of the
webhook configurations and of the CustomResourceDefinitions, and repairs it. Outside of a cluster, as in tests, the
server creates the configurations with its own URL. The HTTP server of `apiserver/serving` is imported here only: an
operator without webhooks does not load it.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pilothouse.apiserver.http import Request, Response, text
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.certificates import ServingCertificate
from pilothouse.builder.extension_service import ExtensionService
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.kubeconfig import SERVICE_ACCOUNT
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.options import PatchType
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.operator.reconciler import Reconciler, kind_of_reconciler
from pilothouse.operator.reviews import MalformedReview, Reviewer, reviewers_of
from pilothouse.operator.webhooks import (
    CONVERT_PATH,
    REGISTRATION,
    AdmissionWebhook,
    CertifiedAddress,
    WebhookOptions,
    admission_webhooks,
    conversion_of,
    conversions,
    definition_name,
    webhook_configurations,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

log = logging.getLogger(__name__)

_MAX_BODY = 64 * 1024 * 1024
"""A ConversionReview carries all objects of a list."""
_PUBLISH_EVERY, _RETRY_AFTER = 60.0, 1.0
_DRAIN = 10.0
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1", "none"))
"""Hosts on this machine; a client without a connection calls a server in this process."""


def webhook_options(
    chosen: WebhookOptions | CertifiedAddress | None, name: str, client: Client
) -> WebhookOptions | None:
    """Return the options of a manager's webhooks; None if the API server cannot reach this process.

    By default, a pod serves webhooks for the Service of the manager's name in the pod's namespace, and another process
    serves them for an API server on the same machine.
    """
    if isinstance(chosen, WebhookOptions):
        return chosen
    if chosen is not None:
        return WebhookOptions.of(chosen)
    try:
        namespace = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        host = client.host.rpartition(":")[0].strip("[]") or client.host
        return WebhookOptions(host="127.0.0.1", port=0) if host in _LOOPBACK else None
    return WebhookOptions(service=f"{namespace}/{name}")


class WebhookMetrics:
    """Metrics of webhooks, with controller-runtime's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        self.total = Counter(
            "controller_runtime_webhook_requests_total",
            "Total number of admission requests by HTTP status code.",
            ["webhook", "code"],
            registry=registry,
        )
        self.seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            ["webhook"],
            registry=registry,
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served.",
            ["webhook"],
            registry=registry,
        )


class WebhookServer:
    """HTTPS server of an operator's webhooks, from `start` to `stop`."""

    def __init__(
        self,
        name: str,
        webhooks: Sequence[AdmissionWebhook],
        reviewers: Mapping[str, Reviewer],
        converted: Sequence[str],
        options: WebhookOptions,
        *,
        registry: CollectorRegistry | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """Create the server. `name` is the name of the webhook configurations, `reviewers` are the handlers by path,
        `converted` are the names of the CustomResourceDefinitions whose conversions this server serves.
        """
        self._name = name
        self._webhooks = webhooks
        self._reviewers = reviewers
        self._converted = converted
        self._options = options
        self._clock = clock
        self._former: dict[str, Json | None] = {}  # conversions of definitions before ours, by name
        self._metrics = WebhookMetrics(registry) if registry is not None else None
        self._server: Server | None = None
        self._client: Client | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._made: ServingCertificate | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    def of(
        cls,
        name: str,
        reconcilers: Sequence[Reconciler[Any]],
        options: WebhookOptions,
        *,
        registry: CollectorRegistry | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> WebhookServer:
        """Return the server of all webhooks of the reconcilers."""
        types = [type(reconciler) for reconciler in reconcilers]
        webhooks = [hook for each in types for hook in admission_webhooks(each)]
        converted = {definition_name(kind_of_reconciler(each)) for each in types if conversions(each)}
        return cls(
            name, webhooks, reviewers_of(reconcilers), sorted(converted), options, registry=registry, clock=clock
        )

    @property
    def port(self) -> int:
        """The listening port."""
        assert self._server is not None, "the port is known after the start"
        return self._server.port

    @property
    def url(self) -> str:
        """URL of a server outside of a cluster."""
        host = self._options.host
        return f"https://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def start(self, client: Client) -> None:
        """Make the certificates, serve, and publish the CA. Raises OSError, StatusError."""
        self._client = client
        options = self._options
        if options.certificate is None:
            pair = await self._make_certificate(client)
        else:
            pair = KeyPair(options.certificate, options.key or options.certificate)
        secure = SecureServing(SecureServingInfo(TlsFiles(pair), options.host, options.port))
        self._server = Server(self._handle, [secure.endpoint])
        await self._server.start()
        if self._ca is not None:
            complete = await self._publish()
            self._tasks.append(asyncio.create_task(self._keep_published(complete)))
        if self._made is not None:
            self._tasks.append(asyncio.create_task(self._made.renew(self._publish_again)))

    async def stop(self) -> None:
        """Let reviews in progress finish, and stop serving.

        Outside of a cluster, the webhook configurations are deleted, and the definitions get their former conversion.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._uninstall()
        if self._server is not None:
            await self._server.shutdown(_DRAIN)
        if self._folder is not None:
            self._folder.cleanup()

    async def _make_certificate(self, client: Client) -> KeyPair:
        self._folder = tempfile.TemporaryDirectory(prefix="pilothouse-webhooks-")
        namespace, _, service = self._options.service.partition("/")
        place = ExtensionService("", (), service or self._name, namespace)
        addresses = frozenset() if self._options.service else frozenset((self._options.host,))
        self._made = ServingCertificate(Path(self._folder.name), place, addresses, in_child=True, clock=self._clock)
        if self._options.service:
            await self._made.share(client)
        await asyncio.to_thread(self._made.keep)
        return self._made.pair

    async def _handle(self, request: Request) -> Response:
        reviewer = self._reviewers.get(request.path)
        if reviewer is None:
            return text(404, "404 page not found\n")
        if request.method != "POST":
            return text(405, "a review must be posted\n")
        if self._metrics is None:
            return await _answer(request, reviewer)
        with (
            self._metrics.seconds.labels(request.path).time(),
            self._metrics.in_flight.labels(request.path).track_inprogress(),
        ):
            answer = await _answer(request, reviewer)
        self._metrics.total.labels(request.path, str(answer.status)).inc()
        return answer

    @property
    def _ca(self) -> str | None:
        """CA bundle in base64; None if another program injects it, such as cert-manager."""
        if self._made is not None:
            return self._made.ca_bundle
        return base64.b64encode(self._options.ca.read_bytes()).decode() if self._options.ca else None

    def _client_config(self, path: str) -> Json:
        return {"url": f"{self.url}{path}", "caBundle": self._ca}

    async def _keep_published(self, complete: bool) -> None:
        """Publish the CA again and again: configurations may be created later or replaced, and the CA may change."""
        while True:
            await self._clock.sleep(_PUBLISH_EVERY if complete else _RETRY_AFTER)
            if self._made is not None and self._options.service:
                await self._made.refresh()
            complete = await self._publish()

    async def _publish_again(self) -> None:
        await self._publish()

    async def _publish(self) -> bool:
        """Publish address and CA, and report whether every object had been there. Failures are logged."""
        assert self._client is not None
        try:
            if self._options.service:
                return await self._inject(self._client)
            return await self._install(self._client)
        except (StatusError, ConnectionFailed) as error:
            log.warning("cannot publish the CA of the webhooks: %s", error)
            return False

    async def _install(self, client: Client) -> bool:
        """Create or update the configurations with the URL of this server."""
        for obj in webhook_configurations(self._name, self._webhooks, self._client_config):
            resource = client.resource(f"{REGISTRATION}/v1", f"{obj['kind'].lower()}s")
            await resource.apply(obj, field_manager=self._name, force=True)
        conversion = conversion_of(self._client_config(CONVERT_PATH))
        definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        for name in self._converted:
            if name not in self._former:
                with suppress(NotFound):
                    self._former[name] = (await definitions.get(name))["spec"].get("conversion")
        return await self._patch_definitions(client, {"spec": {"conversion": conversion}})

    async def _uninstall(self) -> None:
        if self._client is not None and self._server is not None and not self._options.service:
            for type_ in {hook.options.type for hook in self._webhooks}:
                with suppress(StatusError, ConnectionFailed):
                    resource = self._client.resource(f"{REGISTRATION}/v1", f"{type_}webhookconfigurations")
                    await resource.delete(self._name)
            await self._restore_conversions(self._client)

    async def _restore_conversions(self, client: Client) -> None:
        """Restore the conversions that the definitions had before, unless another program has replaced ours."""
        definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        ours = self._client_config(CONVERT_PATH)["url"]
        for name, former in self._former.items():
            with suppress(StatusError, ConnectionFailed):
                current = await definitions.get(name)
                conversion = current["spec"].get("conversion") or {}
                if _conversion_url(conversion) == ours:
                    await definitions.patch(name, {"spec": {"conversion": self._former_conversion(former)}})

    def _former_conversion(self, former: Json | None) -> Json:
        """Return a merge patch; without conversion if a stopped manager on this host was called before."""
        host = self.url.rpartition(":")[0]
        webhook = (former or {}).get("webhook")
        url = _conversion_url(former or {})
        if not webhook or (url.startswith(f"{host}:") and url.endswith(CONVERT_PATH)):
            return {"strategy": "None", "webhook": None}
        cleared = dict.fromkeys(("url", "service", "caBundle"))
        return {"strategy": "Webhook", "webhook": {**webhook, "clientConfig": {**cleared, **webhook["clientConfig"]}}}

    async def _inject(self, client: Client) -> bool:
        """Set the caBundle of the existing configurations."""
        complete = True
        for type_ in {hook.options.type for hook in self._webhooks}:
            resource = client.resource(f"{REGISTRATION}/v1", f"{type_}webhookconfigurations")
            try:
                current = await resource.get(self._name)
            except NotFound:
                log.warning("%swebhookconfiguration %s does not exist yet", type_, self._name)
                complete = False
                continue
            patch = []
            for position, hook in enumerate(current.get("webhooks") or ()):
                if hook["clientConfig"].get("caBundle") != self._ca:
                    path = f"/webhooks/{position}"
                    patch.append({"op": "test", "path": f"{path}/name", "value": hook["name"]})
                    patch.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": self._ca})
            if patch:
                await resource.patch(self._name, patch, PatchType.JSON)
        bundle = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": self._ca}}}}}
        return await self._patch_definitions(client, bundle) and complete

    async def _patch_definitions(self, client: Client, patch: Json) -> bool:
        complete = True
        definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        for name in self._converted:
            try:
                await definitions.patch(name, patch)
            except NotFound:
                complete = False
        return complete


def _conversion_url(conversion: Json) -> str:
    return ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("url") or ""


async def _answer(request: Request, reviewer: Reviewer) -> Response:
    try:
        answer = await reviewer(orjson.loads(await request.read_body(_MAX_BODY)))
    except (MalformedReview, orjson.JSONDecodeError) as error:
        return text(400, f"{error}\n")
    except StatusError as error:  # such as a body over the limit
        return text(error.code, f"{error}\n")
    except Exception as error:
        log.exception("webhook %s failed", request.path)
        return text(500, f"{type(error).__name__}: {error}\n")
    return Response(200, orjson.dumps(answer), [(b"content-type", b"application/json")])
