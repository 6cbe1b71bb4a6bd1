"""Server-side apply and managed fields through the whole server."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from whole_server import CONFIG_MAPS

from pilothouse.apiserver.endpoints.fieldmanager.last_applied import LAST_APPLIED
from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "namespaces/default/horizontalpodautoscalers"


def config_map(name: str = "a", **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def deployment(**spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": whole}


async def apply(api: API, target: str, body: Any, query: str = "fieldManager=alpha") -> Answer:
    return await api.request("PATCH", f"{target}?{query}", body, media=APPLY)


def entries(obj: Json) -> list[tuple[str, str, Any]]:
    found = obj["metadata"].get("managedFields", [])
    return [(entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in found]


async def test_the_manager_is_what_the_request_says_or_what_the_user_agent_is_called(api: API) -> None:
    agent = {"user_agent": "curl/8.1 (x86)"}
    made = (await api.request("POST", CONFIG_MAPS, config_map(data={"k": "v"}), **agent)).json
    assert entries(made) == [("curl", "Update", {"f:data": {".": {}, "f:k": {}}})]
    named = (
        await api.request("POST", f"{CONFIG_MAPS}?fieldManager=me", config_map("b", data={"k": "v"}), **agent)
    ).json
    assert entries(named)[0][0] == "me"
    unknown = (await api.request("POST", CONFIG_MAPS, config_map("c", data={"k": "v"}))).json
    assert entries(unknown)[0][0] == "unknown"


async def test_a_write_that_changes_nothing_leaves_no_trace(api: API) -> None:
    made = (await api.request("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map(data={"k": "v"}))).json
    put = (await api.request("PUT", f"{CONFIG_MAPS}/a?fieldManager=two", config_map(data={"k": "v"}))).json
    patched = await api.request("PATCH", f"{CONFIG_MAPS}/a?fieldManager=two", {"data": {"k": "v"}}, media=MERGE)
    assert put == patched.json == made


async def test_a_client_that_does_not_know_managed_fields_does_not_lose_them(api: API) -> None:
    await api.request("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map(data={"k": "v"}))
    put = (await api.request("PUT", f"{CONFIG_MAPS}/a?fieldManager=two", config_map(data={"k": "v", "l": "w"}))).json
    assert entries(put) == [
        ("one", "Update", {"f:data": {".": {}, "f:k": {}}}),
        ("two", "Update", {"f:data": {"f:l": {}}}),
    ]


async def test_managed_fields_can_be_given_away_and_reset(api: API) -> None:
    made = (await api.request("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map(data={"k": "v"}))).json
    made["metadata"]["managedFields"][0]["manager"] = "other"
    given = (await api.request("PUT", f"{CONFIG_MAPS}/a?fieldManager=two", made)).json
    assert [entry[0] for entry in entries(given)] == ["other"]
    reset: Json = {"metadata": {"managedFields": [{}]}}
    assert entries((await api.request("PATCH", f"{CONFIG_MAPS}/a", reset, media=MERGE)).json) == []
    later = (await api.request("PUT", f"{CONFIG_MAPS}/a?fieldManager=two", config_map(data={"k": "2"}))).json
    assert entries(later) == []


async def test_managed_fields_that_make_no_sense_are_not_taken(api: API) -> None:
    made = (await api.request("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map(data={"k": "v"}))).json
    broken = [
        {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}
    ]
    changed = made | {"metadata": made["metadata"] | {"managedFields": broken}}
    assert entries((await api.request("PUT", f"{CONFIG_MAPS}/a", changed)).json) == entries(made)


async def test_the_first_apply_finds_what_was_there_before(api: API) -> None:
    await api.request("POST", CONFIG_MAPS, config_map(data={"k": "v"}))
    await api.request("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"managedFields": [{}]}}, media=MERGE)
    refused = await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "w"}))
    assert refused.json["message"] == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k'
    )
    forced = (await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "w"}), "fieldManager=m&force=true")).json
    assert entries(forced) == [
        ("m", "Apply", {"f:data": {"f:k": {}}}),
        ("before-first-apply", "Update", {"f:data": {}}),
    ]


async def test_more_than_ten_updaters_become_ancient_changes(api: API) -> None:
    await api.request("POST", f"{CONFIG_MAPS}?fieldManager=m00", config_map(data={"k0": "v"}))
    for number in range(1, 12):
        patch = {"data": {f"k{number}": "v"}}
        answer = await api.request("PATCH", f"{CONFIG_MAPS}/a?fieldManager=m{number:02}", patch, media=MERGE)
    names = [entry[0] for entry in entries(answer.json)]
    assert len(names) == 10
    assert "ancient-changes" in names
    owned = {key for entry in entries(answer.json) for key in entry[2]["f:data"]}
    assert {f"f:k{number}" for number in range(12)} <= owned


async def test_a_status_write_owns_nothing_of_the_spec(api: API) -> None:
    await apply(api, f"{DEPLOYMENTS}/d", deployment())
    body = deployment(replicas=7) | {"status": {"replicas": 2}}
    done = (await apply(api, f"{DEPLOYMENTS}/d/status", body, "fieldManager=zeta")).json
    zeta = next(entry for entry in done["metadata"]["managedFields"] if entry["manager"] == "zeta")
    assert zeta["fieldsV1"] == {"f:status": {"f:replicas": {}}}
    assert zeta["subresource"] == "status"
    assert done["spec"]["replicas"] == 1


async def test_managed_fields_cannot_be_set_through_a_subresource(api: API) -> None:
    made = (await apply(api, f"{DEPLOYMENTS}/d", deployment())).json
    sent = made | {"metadata": made["metadata"] | {"managedFields": [{}]}}
    done = (await api.request("PUT", f"{DEPLOYMENTS}/d/status", sent)).json
    assert entries(done) == entries(made)


async def test_an_apply_to_the_scale_owns_the_replicas(api: API) -> None:
    await apply(api, f"{DEPLOYMENTS}/d", deployment())
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 4}}
    refused = await apply(api, f"{DEPLOYMENTS}/absent/scale", scale | {"metadata": {"name": "absent"}})
    assert refused.status == 404
    done = await apply(api, f"{DEPLOYMENTS}/d/scale", scale, "fieldManager=scaler&force=true")
    assert (done.status, done.json["spec"], "managedFields" in done.json["metadata"]) == (200, {"replicas": 4}, False)
    owners = (await api.request("GET", f"{DEPLOYMENTS}/d")).json["metadata"]["managedFields"]
    scaler = next(entry for entry in owners if entry["manager"] == "scaler")
    assert (scaler["apiVersion"], scaler["subresource"]) == ("apps/v1", "scale")
    assert scaler["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


async def test_a_dry_run_shows_the_outcome_and_keeps_nothing(api: API) -> None:
    shown = await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "v"}), "fieldManager=m&dryRun=All")
    assert (shown.status, shown.json["data"]) == (201, {"k": "v"})
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 404


async def test_an_apply_takes_over_what_is_owned_in_another_version(api: API) -> None:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    meta = {"name": "h"}
    v1 = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": v1}
    made = await apply(api, f"/apis/autoscaling/v1/{AUTOSCALERS}/h", body)
    assert made.status == 201, made.body
    v2 = {"scaleTargetRef": target, "maxReplicas": 5}
    other = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": v2}
    refused = await apply(api, f"/apis/autoscaling/v2/{AUTOSCALERS}/h", other, "fieldManager=beta")
    assert refused.json["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alpha"', "field": ".spec.maxReplicas"}
    ]
    # The same applier in the newer version: what it no longer mentions goes, though it had another name.
    moved = (await apply(api, f"/apis/autoscaling/v2/{AUTOSCALERS}/h", other)).json
    assert moved["spec"]["maxReplicas"] == 5
    assert [entry["apiVersion"] for entry in moved["metadata"]["managedFields"]] == ["autoscaling/v2"]


async def test_kubectl_takes_over_what_the_last_applied_annotation_says(api: API) -> None:
    applied = orjson.dumps(config_map(data={"k": "v", "l": "w"})).decode()
    annotated = {"name": "a", "annotations": {LAST_APPLIED: applied}}
    await api.request("POST", CONFIG_MAPS, config_map(data={"k": "v", "l": "changed"}) | {"metadata": annotated})
    refused = await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "1", "l": "1"}), "fieldManager=kubectl")
    # The annotation still says what is in k, but somebody has changed l since.
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [".data.l"]
    stranger = await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "1"}))
    assert stranger.status == 409
    taken = (await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "1"}), "fieldManager=kubectl")).json
    assert taken["data"] == {"k": "1", "l": "changed"}
    said = '{"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    assert taken["metadata"]["annotations"] == {LAST_APPLIED: said}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("[]", 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array"),
        ("a: [", 400, "error decoding YAML: error converting YAML to JSON: yaml: "),
        ("", 400, "invalid object type: /, Kind="),
        ("apiVersion: a/b/c\nkind: ConfigMap", 400, "invalid object type: /, Kind="),
        ("apiVersion: v1\nkind: Secret", 400, "invalid object type: /v1, Kind=Secret"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: x",
            500,
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata: expected map, got &{x}",
        ),
        ("apiVersion: v1\nkind: ConfigMap", 400, "the name of the object (a based on URL) was undeterminable"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {managedFields: []}", 400, "metadata.managedFields must be nil"),
    ],
)
async def test_what_is_no_configuration_is_refused(api: API, body: str, status: int, message: str) -> None:
    answer = await apply(api, f"{CONFIG_MAPS}/a", body)
    assert (answer.status, answer.json["message"][: len(message)]) == (status, message)


async def test_an_object_that_is_made_by_an_apply_has_no_uid_yet(api: API) -> None:
    body = config_map() | {"metadata": {"name": "a", "uid": "x"}}
    answer = await apply(api, f"{CONFIG_MAPS}/a", body)
    why = "uid mismatch: the provided object specified uid x, and no existing object was found"
    assert (answer.status, answer.json["message"].endswith(why)) == (409, True)


async def test_a_key_that_stands_there_twice_is_refused_warned_about_or_ignored(api: API) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: one\n  k: two\n"
    strict = await apply(api, f"{CONFIG_MAPS}/a", body, "fieldManager=m&fieldValidation=Strict")
    said = 'error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key "k" already set in map'
    assert (strict.status, strict.json["message"]) == (400, f"error strict decoding YAML: {said}")
    ignored = await apply(api, f"{CONFIG_MAPS}/a", body, "fieldManager=m&fieldValidation=Ignore")
    assert (ignored.status, ignored.json["data"], "warning" in ignored.headers) == (201, {"k": "two"}, False)
    warned = await apply(api, f"{CONFIG_MAPS}/a", body + "  k: three\n", "fieldManager=m")
    assert warned.headers["warning"] == ", ".join(
        f'299 - "line {line}: key \\"k\\" already set in map"' for line in (6, 7)
    )


async def test_applying_to_an_object_whose_items_have_no_names_says_so(api: API) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    await api.request("POST", path, {**account, "secrets": [{}]})
    answer = await apply(api, f"{path}/a", account)
    assert answer.status == 500
    assert answer.json["message"].startswith(
        "failed to create manager for existing fields: failed to convert new object (default/a; /v1, "
        "Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that omits"
    )


@pytest.mark.parametrize(("value", "found"), [("[1]", "array"), ('{"a": 1}', "object"), ("1.5", "number 1.5")])
async def test_an_int_or_string_may_be_anything_until_it_is_converted(api: API, value: str, found: str) -> None:
    services = "/api/v1/namespaces/default/services"
    start = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": [{"port": 80, '
    refused = await apply(api, f"{services}/x", orjson.Fragment(f'{start}"targetPort": {value}}}]}}}}'))
    why = f"json: cannot unmarshal {found} into Go value of type int32"
    whole = f"unable to convert unstructured object to /v1, Kind=Service: {why}"
    shown = f"failed to convert new object (/x; /v1, Kind=Service) to proper version: {whole}"
    assert (refused.status, refused.json["message"]) == (500, shown)


async def test_an_int_or_string_of_somebody_else_is_a_conflict_whatever_takes_its_place(api: API) -> None:
    rolling = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    assert (await apply(api, f"{DEPLOYMENTS}/d", deployment(**rolling))).status == 201
    rolling["strategy"]["rollingUpdate"] = {"maxSurge": [1]}
    refused = await apply(api, f"{DEPLOYMENTS}/d", deployment(**rolling), "fieldManager=beta")
    assert refused.status == 409
    assert refused.json["details"]["causes"][0]["field"] == ".spec.strategy.rollingUpdate.maxSurge"


async def test_a_number_beyond_all_integers_is_a_quantity_as_gos_float_is_written(api: API) -> None:
    quotas = "/api/v1/namespaces/default/resourcequotas"
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "selfLink": "/somewhere"}}
    made = await apply(api, f"{quotas}/q", body | {"spec": {"hard": {"pods": 1 << 63}}})
    assert (made.status, made.json["spec"]["hard"]) == (201, {"pods": "9223372036854776k"})
    assert "selfLink" not in made.json["metadata"]


@pytest.mark.parametrize("nobody", [[], [{}]])
@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
async def test_managed_fields_of_nobody_end_the_tracking(api: API, nobody: list[Json], verb: str) -> None:
    await apply(api, f"{CONFIG_MAPS}/a", config_map(data={"k": "v"}))
    body = config_map(data={"k": "v"})
    body["metadata"]["managedFields"] = nobody
    media = MERGE if verb == "PATCH" else "application/json"
    cleared = await api.request(verb, f"{CONFIG_MAPS}/a", body, media=media)
    assert "managedFields" not in cleared.json["metadata"]
    patched = await api.request("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    assert "managedFields" not in patched.json["metadata"]
