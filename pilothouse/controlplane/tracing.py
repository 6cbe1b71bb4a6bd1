"""TracingConfiguration: endpoint and sampling rate of request traces. Validation messages are upstream's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pilothouse.controlplane.options.files import content
from pilothouse.controlplane.serving_place import server_id
from pilothouse.controlplane.strict_decoding import Shape, decode
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.status_error import aggregate

if TYPE_CHECKING:
    from pilothouse.apiserver.tracing.recording import RecordingTracer

_GROUP, _KIND = "apiserver.config.k8s.io", "TracingConfiguration"
_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_SHAPE: Shape = {"endpoint": str, "samplingRatePerMillion": int}
_MILLION = 1_000_000
_SCHEMES = ("dns", "unix", "unix-abstract")
_NAMING = "See https://github.com/grpc/grpc/blob/master/doc/naming.md"


@dataclass(frozen=True, slots=True)
class TracingConfiguration:
    endpoint: str | None
    """Collector address; None = localhost:4317."""
    sampling_rate_per_million: int
    """Sampling rate of traces that begin in this server; 0 = record only traces of trusted clients."""


def read_tracing_configuration(file: str) -> TracingConfiguration:
    """Read the file. Raises ValueError."""
    data = content(file)
    try:
        config = decode(data, group=_GROUP, kind=_KIND, versions=dict.fromkeys(_VERSIONS, _SHAPE))
    except ValueError as error:
        reason = f"unable to decode tracing configuration data: {error}"
        raise ValueError(f"failed to read tracing config: {reason}") from None
    endpoint, rate = config.get("endpoint"), config.get("samplingRatePerMillion") or 0
    if problems := [str(error) for error in _errors(endpoint, rate)]:
        raise ValueError(f"failed to validate tracing configuration: {aggregate(problems)}")
    return TracingConfiguration(endpoint, rate)


def ensure_installed() -> None:
    """Raise ValueError if the OpenTelemetry SDK is not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.grpc
        import opentelemetry.sdk  # noqa: F401
    except ImportError:
        from pilothouse.machinery.installation import extra_command

        missing = "traces are sent by OpenTelemetry's SDK, which is not installed"
        raise ValueError(f"{missing}: {extra_command('tracing')}") from None


def build_tracer(configuration: TracingConfiguration) -> RecordingTracer:
    from pilothouse.apiserver.tracing.recording import RecordingTracer  # imports gRPC and the SDK

    share = configuration.sampling_rate_per_million / _MILLION
    return RecordingTracer(configuration.endpoint, share, instance=server_id())


def _errors(endpoint: str | None, rate: int) -> Errors:
    path = root("samplingRatePerMillion")
    if rate < 0:
        yield invalid(path, rate, "sampling rate must be positive")
    if rate > _MILLION:
        yield invalid(path, rate, "sampling rate per million must be less than or equal to one million")
    if endpoint is not None:
        yield from _endpoint_errors(endpoint if "//" in endpoint else f"dns://{endpoint}")


def _endpoint_errors(endpoint: str) -> Errors:
    try:
        scheme = urlsplit(endpoint).scheme
    except ValueError as error:
        yield invalid("endpoint", endpoint, str(error))
        return
    if scheme not in _SCHEMES:
        reason = f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  {_NAMING}"
        yield invalid("endpoint", endpoint, reason)
