"""The pytest plugin as its users have it: suites of their own, run by pytest itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import _pytest.pytester
import pytest
import yaml

from pilothouse.testing import BlockingAPI, Server

pytest_plugins = ["pytester"]

_INSTALLED = entry_points(group="pytest11", name="pilothouse-testing")
# By its entry point's name all modules of the package would be rewritten for their assertions, in this process, too.
MODULE = "pilothouse.testing.pytest_plugin"
PLUGIN = () if _INSTALLED else ("-p", MODULE)
ASYNC = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
QUIET = (*PLUGIN, "-p", "no:schemathesis", "-p", "no:cacheprovider", "--strict-markers", *ASYNC)
BACKENDS = ["asyncio", *(["trio"] if find_spec("trio") else [])]

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: %s, kind: %s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
SPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[BlockingAPI]:
    """A cluster that exists. It also imports what servers need: what a run in this process imports is forgotten."""
    with Server(recent_requests=1) as api:
        with api.client() as client:
            definition = yaml.safe_load(CRD % ("warmers", "warmers", "Warmer"))
            client.for_object(definition).apply(definition, field_manager="tests")
        yield api


class _WithoutForgetting(_pytest.pytester.SysModulesSnapshot):
    """A module that is imported a second time has other classes than what other tests hold from the first time."""

    def restore(self) -> None:
        for name, module in list(sys.modules.items()):
            if not name.startswith(("test_", "conftest")):
                self._SysModulesSnapshot__saved.setdefault(name, module)  # type: ignore[attr-defined]
        super().restore()


@pytest.fixture(autouse=True)
def imports_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pytest.pytester, "SysModulesSnapshot", _WithoutForgetting)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*QUIET, *arguments)


def test_every_test_begins_with_the_template_of_its_markers(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", widgets=CRD % ("widgets", "widgets", "Widget"), space=SPACE % "given")
    options = ("manifests = space.yaml", "crds = widgets.yaml", "flags = authorization-mode=RBAC")
    pytester.makeini("\n".join(["[pytest]", *(f"pilothouse_{each}" for each in options)]))
    pytester.makepyfile(
        """
        import os
        import pytest

        def names(client):
            return {each["metadata"]["name"] for each in client.resource("v1", "namespaces").items()}

        @pytest.mark.parametrize("turn", [1, 2])
        def test_nothing_is_left_of_others(kube_client, turn):
            kube_client.resource("v1", "namespaces").create({"metadata": {"name": "mine"}})
            kube_client.resource("v1", "namespaces").delete("given")
            assert "mine" in names(kube_client)

        class TestInside:
            pytestmark = pytest.mark.pilothouse(flags={"anonymous_auth": False})

            @pytest.mark.pilothouse(manifests=[{"apiVersion": "example.com/v1", "kind": "Widget",
                                                "metadata": {"name": "first", "namespace": "given"}}])
            def test_what_was_said_outside_counts_inside(self, kube_client, pilothouse):
                assert kube_client.resource("example.com/v1", "widgets", namespace="given").get("first")
                assert pilothouse.as_user("ann", groups=["staff"]).request("GET", "/api/v1/pods").status == 403

        def test_the_server_is_the_same_where_the_options_are(pilothouse, kubeconfig):
            assert pilothouse.kubeconfig == kubeconfig
            assert os.environ["KUBECONFIG"] == str(kubeconfig)
            robot = pilothouse.service_account("given/robot").request("GET", "/api/v1/pods")
            assert 'User "system:serviceaccount:given:robot"' in robot.json["message"]

        def test_that_of_the_session_is_there_too(pilothouse_server):
            assert pilothouse_server.request("GET", "/api/v1/namespaces/given").status == 200
        """
    )
    run(pytester).assert_outcomes(passed=5)


def test_clients_are_awaited_under_any_event_loop_and_used_from_threads(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        from concurrent.futures import ThreadPoolExecutor
        import pytest

        def new(name):
            return {{"metadata": {{"name": name}}}}

        async def test_asyncio(kube_client):
            spaces = kube_client.resource("v1", "namespaces")
            await spaces.create(new("here"))
            async with await spaces.watch() as events:
                seen = set()
                async for event in events:
                    seen.add(event.object["metadata"]["name"])
                    if "here" in seen:
                        break

        class TestAnyio:
            pytestmark = pytest.mark.anyio

            @pytest.fixture(params={BACKENDS!r})
            def anyio_backend(self, request):
                return request.param

            async def test_anyio(self, kube_client, anyio_backend):
                await kube_client.resource("v1", "namespaces").create(new("here"))

            async def test_bench(self, pilothouse, anyio_backend):
                before = await pilothouse.snapshot()
                async with pilothouse.fault(verbs=["list"], resources=["pods"], answer=503) as fault:
                    assert (await pilothouse.request("GET", "/api/v1/pods")).status == 503
                    assert (await fault.status())["hits"] == 1
                await pilothouse.client().resource("v1", "namespaces").create(new("here"))
                await pilothouse.settle()
                then = await pilothouse.clock.now()
                await pilothouse.clock.step("1h")
                assert (await pilothouse.clock.now() - then).total_seconds() >= 3600
                robot = await pilothouse.service_account("default/robot")
                for user in (robot, pilothouse.as_user("ann")):
                    assert (await user.request("GET", "/api/v1/pods")).status == 403
                async with pilothouse.recording(users=["ann"]) as recording:
                    await pilothouse.as_user("ann").request("GET", "/version")
                    assert (await recording.status())["total"] == 1
                watch = await pilothouse.open("GET", "/api/v1/namespaces?watch=true&timeoutSeconds=1")
                assert b"kube-system" in await watch.read()
                await pilothouse.restore(before)
                assert (await pilothouse.request("GET", "/api/v1/namespaces/here")).status == 404
                async with pilothouse.fork() as other:
                    await other.client().resource("v1", "namespaces").create(new("there"))
                assert (await pilothouse.request("GET", "/api/v1/namespaces/there")).status == 404

        def test_threads(kube_client, pilothouse):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(kube_client.resource("v1", "namespaces").create, map(new, "abcd")))
                assert {{each.status for each in pool.map(pilothouse.request, ["GET"] * 8, ["/readyz"] * 8)}} == {{200}}
        """
    )
    run(pytester, "-o", "pilothouse_flags=authorization-mode=RBAC").assert_outcomes(passed=2 + 2 * len(BACKENDS))


@pytest.mark.slow
def test_several_clusters_are_clean_for_each_test(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", widgets=CRD % ("widgets", "widgets", "Widget"))
    pytester.makepyfile(
        f"""
        import os
        import pytest
        from pilothouse.client import BlockingClient, connect, load_config
        from pilothouse.errors import ConnectionFailed

        pytestmark = [
            pytest.mark.pilothouse(crds=["widgets.yaml"]),
            pytest.mark.pilothouse_clusters(hub=1, spokes=2),
        ]

        @pytest.mark.parametrize("turn", [1, 2])
        def test_blocking(pilothouse_clusters, turn):
            assert pilothouse_clusters.names == ["hub", "spokes-1", "spokes-2"]
            assert os.environ["KUBECONFIG"] == str(pilothouse_clusters.kubeconfig)
            for name in pilothouse_clusters.names:
                with BlockingClient(load_config(context=name)) as client:
                    client.resource("example.com/v1", "widgets").list()
                    client.resource("v1", "namespaces").create({{"metadata": {{"name": f"of-{{name}}"}}}})
            for index, spoke in enumerate(pilothouse_clusters.group("spokes"), 1):
                found = spoke.client().resource("v1", "namespaces").list()["items"]
                assert f"of-spokes-{{index}}" in [item["metadata"]["name"] for item in found]
                assert "of-hub" not in [item["metadata"]["name"] for item in found]
            systems = [api.request("GET", "/api/v1/namespaces/kube-system") for api in map(
                pilothouse_clusters.__getitem__, pilothouse_clusters.names)]
            assert len({{system.json["metadata"]["uid"] for system in systems}}) == 3
            pilothouse_clusters.settle()
            with BlockingClient(load_config(context="spokes-1")) as client:
                with pilothouse_clusters.partition("spokes-1"), pytest.raises(ConnectionFailed):
                    client.get_json("/version")
                client.get_json("/version")

        class TestAnyio:
            pytestmark = pytest.mark.anyio

            @pytest.fixture(params={BACKENDS!r})
            def anyio_backend(self, request):
                return request.param

            async def test_awaited(self, pilothouse_clusters, anyio_backend):
                spoke = pilothouse_clusters["spokes-1"]
                assert (await spoke.request("GET", "/api/v1/namespaces/of-spokes-1")).status == 404
                async with pilothouse_clusters.latency("1ms"), pilothouse_clusters.partition("hub", silent=True):
                    await pilothouse_clusters.group("spokes")[0].client().resource("v1", "namespaces").list()
                await pilothouse_clusters.settle()

        def test_fails(pilothouse_clusters):
            pilothouse_clusters["spokes-2"].request("POST", "/api/v1/namespaces", {{"metadata": {{"name": "x"}}}})
            assert False
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=2 + len(BACKENDS), failed=1)
    result.stdout.fnmatch_lines(["*Pilothouse: objects that changed (spokes-2)*", "created Namespace x"])


KOPF = """
    import threading
    import kubernetes  # before kopf, and before KUBECONFIG is set
    import kopf
    import pytest

    def handlers(registry):
        @kopf.on.create("v1", "configmaps", registry=registry, field="metadata.labels.wanted")
        def created(patch, **_):
            patch.setdefault("metadata", {}).setdefault("labels", {})["seen"] = "yes"

    @pytest.fixture(params=[kopf.login_via_client, kopf.login_with_kubeconfig])
    def operator(pilothouse, request):
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(request.param)
        handlers(registry)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        stop = threading.Event()
        arguments = {"clusterwide": True, "stop_flag": stop, "registry": registry, "settings": settings}
        thread = threading.Thread(target=kopf.run, kwargs=arguments)
        thread.start()
        yield
        stop.set()
        thread.join()

    def test_kopf(pilothouse, kube_client, operator):
        config_maps = kube_client.resource("v1", "configmaps", namespace="default")
        pilothouse.settle(user_agents=["kopf"], timeout=300)
        config_maps.create({"metadata": {"name": "mine", "labels": {"wanted": "yes"}}})
        pilothouse.settle(timeout=300)
        assert config_maps.get("mine")["metadata"]["labels"]["seen"] == "yes"
        assert kubernetes.client.CoreV1Api().list_namespace().items
"""


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("kopf") and find_spec("kubernetes")), reason="needs kopf and kubernetes")
def test_kopf_finds_the_server_after_an_import_of_the_official_client(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KOPF)
    run(pytester).assert_outcomes(passed=2)


def test_the_report_of_a_failure_tells_what_happened(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_before(kube_client):
            kube_client.resource("v1", "configmaps", namespace="default").create({"metadata": {"name": "of-before"}})

        def test_fails(kube_client, pilothouse):
            kube_client.resource("v1", "namespaces").patch("default", {"metadata": {"labels": {"a": "b"}}})
            pilothouse.request("GET", "/api/v1/componentstatuses")
            event = {"metadata": {"name": "e"}, "reason": "Because", "message": "it was so", "type": "Warning",
                     "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
            kube_client.resource("v1", "events", namespace="default").create(event)
            assert False
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Pilothouse: objects that changed*",
            "changed Namespace default",
            "*+    a: b",
            "*Pilothouse: events*",
            "Warning Because Pod default/p: it was so",
            "*Pilothouse: last requests*",
            "200 *ms  kubernetes-admin * PATCH /api/v1/namespaces/default",
            "*Pilothouse: warnings*",
            "v1 ComponentStatus is deprecated in v1.19+",
        ]
    )
    result.stdout.no_fnmatch_line("*of-before*")


def test_what_cannot_be_installed_is_an_error_that_says_why(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", one=CRD % ("widgets", "widgets", "Thing"), two=CRD % ("gadgets", "gadgets", "Thing"))
    pytester.makefile(".yaml", bad="{apiVersion: v1, kind: ConfigMap, metadata: {name: UPPER}}", none="just: this")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.pilothouse(crds=["nowhere.yaml"])
        def test_missing(pilothouse): pass

        @pytest.mark.pilothouse(crds=["one.yaml", "two.yaml"])
        def test_not_established(pilothouse): pass

        @pytest.mark.pilothouse(manifests=["bad.yaml"])
        def test_refused(pilothouse): pass

        @pytest.mark.pilothouse(manifests="none.yaml")
        def test_no_object(pilothouse): pass

        @pytest.mark.pilothouse(crd=[])
        def test_unknown(pilothouse): pass

        @pytest.mark.pilothouse(flags={"authorization-mode": "Nobody"})
        def test_not_started(pilothouse): pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines(
        [
            f"*crds: not found: {pytester.path}/nowhere.yaml",
            "*CustomResourceDefinition 'gadgets.example.com' (from *two.yaml) did not get Established: *"
            '"ThingList" is already in use*',
            "*ConfigMap 'UPPER' (from *bad.yaml) was not installed: *a lowercase RFC 1123 subdomain*",
            "*none.yaml has a document that is not an object*",
            "*unknown option crd; known options: crds, manifests, *",
            '*authorization-mode "Nobody" is not a valid mode',
        ]
    )


def test_webhook_configurations_are_pointed_at_the_test_with_its_certificate(pytester: pytest.Pytester) -> None:
    pytester.makefile(
        ".yaml",
        webhook="""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: nobody}
webhooks:
- name: nobody.example.com
  clientConfig: {service: {name: webhooks, namespace: system, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  admissionReviewVersions: [v1]
  sideEffects: None
""",
    )
    pytester.makepyfile(
        """
        import json, ssl, threading
        from http.server import BaseHTTPRequestHandler, HTTPServer
        import pytest

        class Refuse(BaseHTTPRequestHandler):
            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["content-length"])))
                said = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": self.path}}
                answer = json.dumps({**review, "response": said}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_): pass

        @pytest.mark.pilothouse(manifests=["webhook.yaml"], webhooks=("127.0.0.1", 0))
        def test_refused(kube_client, pilothouse_webhooks):
            server = HTTPServer((pilothouse_webhooks.host, pilothouse_webhooks.port), Refuse)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pilothouse_webhooks.certificate, pilothouse_webhooks.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            with pytest.raises(Exception, match="denied the request: /validate"):
                kube_client.resource("v1", "configmaps", namespace="default").create({"metadata": {"name": "no"}})
            server.shutdown()
            server.server_close()
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_same_tests_run_against_a_cluster_that_exists(pytester: pytest.Pytester, cluster: BlockingAPI) -> None:
    pytester.makefile(".yaml", widgets=CRD % ("sprockets", "sprockets", "Sprocket"))
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.pilothouse(crds=["widgets.yaml"])
        async def test_anywhere(kube_client, pilothouse):
            await kube_client.resource("example.com/v1", "sprockets").list()
            assert (await pilothouse.as_user("ann").request("GET", "/api/v1/pods")).status == 200
            robot = await pilothouse.service_account("default/robot")
            assert (await robot.request("GET", "/api/v1/pods")).status == 200

        def test_only_here(pilothouse):
            pilothouse.snapshot()

        async def test_only_here_awaited(pilothouse):
            await pilothouse.snapshot()

        @pytest.mark.pilothouse(nodes=2)
        def test_with_nodes(pilothouse): pass
        """
    )
    result = run(pytester, "-rs", f"--pilothouse-kubeconfig={cluster.kubeconfig}")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED *only a Pilothouse server supports snapshots",
            "SKIPPED *simulated_nodes needs a server of Pilothouse",
        ],
        consecutive=False,
    )
    assert cluster.request("GET", "/apis/example.com/v1/sprockets").status == 404


def test_the_servers_of_two_workers_do_not_meet(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take longer to import than this takes
    pytester.makepyfile(
        """
        import pytest
        from pathlib import Path

        @pytest.mark.parametrize("number", range(2))
        def test_alone(pilothouse, number, worker_id):
            with open(worker_id, "a") as file:
                print(pilothouse.url, file=file)
            made = pilothouse.request("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
            assert made.status == 201
        """
    )
    pytester.runpytest_subprocess("-p", "xdist", "-p", MODULE, "-n2", "--dist=each").assert_outcomes(passed=4)
    urls = [set(Path(pytester.path / worker).read_text().split()) for worker in ("gw0", "gw1")]
    assert [len(each) for each in urls] == [1, 1]
    assert urls[0] != urls[1]


def test_nothing_of_a_server_is_imported_before_a_test_wants_one() -> None:
    script = "import sys, pilothouse.testing.pytest_plugin; print([m for m in sys.modules if 'pilothouse.' in m])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "pilothouse.testing.pytest_plugin.settings" in found
    for heavy in ("apiserver", "client", "controlplane", "testing.api"):
        assert f"pilothouse.{heavy}" not in found


VERSIONED_SUITE = """
import pytest

def version(client):
    return client.get_json("/version")["minor"]

def test_of_the_matrix(kube_client):
    kube_client.resource("v1", "namespaces").create({"metadata": {"name": "mine"}})
    assert version(kube_client) != "35"

def test_begins_with_the_template(kube_client):
    assert "mine" not in [each["metadata"]["name"] for each in kube_client.resource("v1", "namespaces").items()]

@pytest.mark.pilothouse(kubernetes_version="1.37")
def test_with_a_version_of_its_own(kube_client):
    assert version(kube_client) == "37"

def test_without_a_server():
    pass
"""


@pytest.mark.slow
def test_a_matrix_runs_each_test_on_each_version(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(VERSIONED_SUITE)
    result = run(pytester, "-v", "--pilothouse-versions=1.35,1.36")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*test_of_the_matrix[[]1.35[]] FAILED*", "*test_of_the_matrix[[]1.36[]] PASSED*"])
    result.stdout.fnmatch_lines(
        ["*Kubernetes versions*", "1.35: 1 passed, 1 failed", "1.36: 2 passed", "1.37: 1 passed"]
    )


def test_a_file_that_cannot_be_collected_is_reported_as_usual(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import nothing_of_the_kind")
    result = run(pytester, "--pilothouse-versions=1.35,1.36")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*No module named 'nothing_of_the_kind'*"])


def test_an_unknown_version_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.pilothouse(kubernetes_version="1.20")
        def test_one(kube_client): ...
        """
    )
    run(pytester).stdout.fnmatch_lines(['*Kubernetes version "1.20" is not available; choose one of 1.34, *'])
    refused = pytester.runpytest_subprocess(*QUIET, "--pilothouse-versions=1.36,2.0")
    refused.stderr.fnmatch_lines(['*Kubernetes version "2.0" is not available; choose one of 1.34, *'])


def test_the_version_of_the_configuration_is_that_of_every_server(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npilothouse_kubernetes_version = 1.34")
    pytester.makepyfile(
        """
        from pilothouse.machinery import release

        def test_one(pilothouse, kube_client):
            assert kube_client.get_json("/version")["gitVersion"] == "v1.34.11"
            assert release.current().name == "1.34", "the server runs in this process"
        """
    )
    pytester.runpytest_subprocess(*QUIET).assert_outcomes(passed=1)
