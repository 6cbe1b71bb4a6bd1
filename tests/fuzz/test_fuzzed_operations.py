"""What the OpenAPI documents promise, tried out: requests that fit them, and requests that just do not."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio
import schemathesis
from fuzz_budget import budget
from fuzz_verdicts import bounded, check
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = ["/openapi/v3/api/v1", "/openapi/v3/apis/coordination.k8s.io/v1", "/openapi/v3/apis/policy/v1"]
RESOURCES = ("configmaps", "limitranges", "resourcequotas", "leases", "poddisruptionbudgets", "namespaces")
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operations(api: API) -> list[Any]:
    """Of some resources, without watches, which would take their time."""
    found = []
    for url in DOCUMENTS:
        document = (await api.request("GET", url)).json
        schema = schemathesis.openapi.from_dict(document)
        for path, item in document["paths"].items():
            if path.split("/{name}")[0].rsplit("/", 1)[-1] in RESOURCES and "/watch/" not in path:
                methods = {"get", "post", "put", "patch", "delete"} & set(item)
                found += [schema[path][method.upper()] for method in sorted(methods)]
    assert len(found) > 40
    return found


async def _ask(api: API, case: Any) -> None:
    query = {name: value for name, value in (case.query or {}).items() if name not in ("watch", "resourceVersion")}
    target = f"{case.formatted_path}?{urlencode(query, doseq=True, errors='replace')}"
    has_body = isinstance(case.body, dict | list | str | int | float | bool | None)
    body = json.dumps(case.body) if has_body else None
    with bounded(3):
        check(await api.request(case.method, target, body, media=case.media_type or "application/json"))


@budget(40)
@given(data=st.data())
async def test_every_operation_answers_as_documented(api: API, operations: list[Any], data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(operations))
    case = data.draw(operation.as_strategy(generation_mode=data.draw(st.sampled_from(MODES))))
    await _ask(api, case)
