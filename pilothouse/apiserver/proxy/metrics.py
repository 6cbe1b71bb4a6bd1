"""Metrics of WebSockets forwarded to kubelets, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally

TRANSLATED = CounterTally(
    "apiserver_stream_translator_requests",
    "[ALPHA] Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming "
    "RemoteCommand/V5",
    ("code",),
    registry=REGISTRY,
)
TUNNELED = CounterTally(
    "apiserver_stream_tunnel_requests",
    "[ALPHA] Total number of requests that were handled by the StreamTunnelProxy, which processes streaming "
    "PortForward/V2",
    ("code",),
    registry=REGISTRY,
)
WEBSOCKETS = CounterTally(
    "apiserver_websocket_streaming_requests",
    "[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled "
    "by subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; "
    "otherwise translated_at_apiserver.",
    ("subresource", "proxy_type"),
    registry=REGISTRY,
)
