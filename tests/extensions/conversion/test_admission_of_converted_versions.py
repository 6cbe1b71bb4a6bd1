"""An admission webhook for one version sees and changes what comes in another, through the conversion webhook."""

from __future__ import annotations

from pathlib import Path

from admission_webhooks import admission_webhooks, patching
from conversion_webhook import Converter, widgets
from custom_resources import WIDGETS, install, widget
from webhook_server import webhook_server
from whole_server import whole_server

V2 = WIDGETS.replace("/v1/", "/v2/")
RULES = [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}]
HOST = patching({"op": "replace", "path": "/spec/host", "value": "changed"})


async def test_each_write_is_converted_for_the_webhook_and_back(tmp_path: Path) -> None:
    async with (
        webhook_server(Converter()) as conversion,
        whole_server(tmp_path) as api,
        admission_webhooks(api) as hooks,
    ):
        await install(api, widgets(conversion.by_url(), stored="v2"))
        mutating = hooks.webhook("m", HOST, rules=[{**RULES[0], "operations": ["CREATE", "UPDATE"]}])
        async with (
            hooks.configured("mutating", mutating),
            hooks.configured("validating", hooks.webhook("v", rules=RULES)) as calls,
        ):
            made = await api.request("POST", V2, widget(api_version="v2", spec={"address": "h:81", "count": 1}))
            assert made.json["spec"] == {"address": "changed:81", "count": 1}
            applied = widget(api_version="v2", spec={"address": "x:82"})
            apply = {"media": "application/apply-patch+yaml"}
            done = await api.request("PATCH", f"{V2}/a?fieldManager=me&force=true", applied, **apply)
            assert done.json["spec"] == {"address": "changed:82", "count": 1}
            await api.request("DELETE", f"{V2}/a")
    assert {request["kind"]["version"] for _, request in calls} == {"v1"}
    assert {request["requestKind"]["version"] for _, request in calls} == {"v2"}
    shown = [
        (name, request["operation"], (request["object"] or {}).get("spec"), (request["oldObject"] or {}).get("spec"))
        for name, request in calls
    ]
    first, changed = {"host": "changed", "port": 81, "replicas": 1}, {"host": "changed", "port": 82, "replicas": 1}
    assert shown == [
        ("m", "CREATE", {"host": "h", "port": 81, "replicas": 1}, None),
        ("v", "CREATE", first, None),
        ("m", "UPDATE", {"host": "x", "port": 82, "replicas": 1}, first),
        ("v", "UPDATE", changed, first),
        ("v", "DELETE", None, changed),
    ]
