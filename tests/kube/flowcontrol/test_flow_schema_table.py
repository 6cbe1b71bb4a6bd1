"""FlowSchemas are shown in the order in which they are tried."""

from __future__ import annotations

from pathlib import Path

from whole_server import whole_server

PATH = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_a_table_is_in_order_of_precedence_and_a_list_in_order_of_names(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        rows = (await api.request("GET", PATH, accept=TABLE)).json["rows"]
        items = (await api.request("GET", PATH)).json["items"]
    shown = [(row["cells"][2], row["cells"][0]) for row in rows]
    assert shown[0] == (1, "exempt")
    assert shown == sorted(shown)
    names = [item["metadata"]["name"] for item in items]
    assert names == sorted(names)
    assert names != [name for _, name in shown]
