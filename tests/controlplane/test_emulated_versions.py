"""--emulated-version on a whole server: gates and served APIs change, the version of the binary does not."""

from __future__ import annotations

from pilothouse.testing import API, server


async def emulating(api: API) -> dict[str, str]:
    shown = (await api.request("GET", "/version")).json
    return {name: shown[name] for name in ("minor", "gitVersion", "emulationMinor", "minCompatibilityMinor")}


async def test_the_emulated_version_is_shown_beside_the_version_of_the_binary() -> None:
    async with server(emulated_version="1.35", controllers="-*") as api:
        assert await emulating(api) == {
            "minor": "36",
            "gitVersion": "v1.36.4",
            "emulationMinor": "35",
            "minCompatibilityMinor": "34",
        }
        metrics = (await api.request("GET", "/metrics", accept="text/plain")).body.decode()
        assert 'version_info{binary="1.36.4",component="kube",emulation="1.35",min_compat="1.34"} 1' in metrics
        assert 'kubernetes_feature_enabled{name="MutatingAdmissionPolicy",stage="BETA"} 0' in metrics
        assert (await api.request("GET", "/statusz", accept="text/plain")).status == 404, "alpha in 1.35"


async def test_the_minimum_compatibility_version_is_its_own() -> None:
    async with server(emulated_version="kube=1.36", min_compatibility_version="1.34", controllers="-*") as api:
        assert (await emulating(api))["minCompatibilityMinor"] == "34"


async def test_kinds_that_are_newer_than_the_emulated_version_are_not_served() -> None:
    policies, group = "mutatingadmissionpolicies", "/apis/admissionregistration.k8s.io"
    async with server(controllers="-*") as own, server(emulated_version="1.35", controllers="-*") as older:
        for api, names_it in ((own, True), (older, False)):
            served = (await api.request("GET", f"{group}/v1")).json["resources"]
            assert (policies in [each["name"] for each in served]) is names_it
            assert (await api.request("GET", f"{group}/v1/{policies}")).status == (200 if names_it else 404)
