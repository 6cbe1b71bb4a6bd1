"""An extension API server behind the aggregator, through the real kubectl: registered, used, killed and back again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from extension_server import ExtensionServer
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT, PATIENCE
from serving_process import ServeProcess, parsed

API_SERVICE = "v1alpha1.wardle.example.com"
FLUNDERS = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """One of its own, with users who may not do everything."""
    folder = tmp_path_factory.mktemp("aggregated")
    (folder / "tokens.csv").write_text("reader-token,reader,r-1\n")
    flags = [f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC"]
    process = ServeProcess(folder / "data", *flags)
    yield process
    process.close()


@pytest.fixture(scope="module")
def extension(cluster: ServeProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExtensionServer]:
    if BINARY is None:
        pytest.skip(MISSING)
    server = ExtensionServer(cluster.data_dir / "admin.kubeconfig", tmp_path_factory.mktemp("wardle"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def kubectl(cluster: ServeProcess, extension: ExtensionServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    made = Kubectl(cluster.data_dir / "admin.kubeconfig", tmp_path_factory.mktemp("home"))
    made("apply", "-f", str(extension.manifest))
    made("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}", KUBECTL_TIMEOUT)
    _eventually(lambda: cluster.get(FLUNDERS)[0] == 200)
    # Until discovery tells of them; this command also renews what kubectl remembers of it, which not all commands do.
    _eventually(lambda: "flunders" in made("api-resources", "--api-group=wardle.example.com"))
    return made


def _eventually(check: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _flunder(name: str, **spec: str) -> str:
    obj = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}
    return json.dumps(obj)


def test_the_objects_of_another_server_are_used_like_any_others(kubectl: Kubectl) -> None:
    created = kubectl("create", "-f", "-", stdin=_flunder("one", reference="two"))
    assert created == "flunder.wardle.example.com/one created\n"
    assert kubectl("get", "fl").split()[:3] == ["NAME", "REFERENCE", "AGE"]
    assert kubectl.json("get", "flunder", "one")["spec"] == {"reference": "two", "referenceType": "Flunder"}
    kubectl("label", "flunder", "one", "a=b")
    assert kubectl("get", "flunders", "-l", "a=b", "-o", "name") == "flunder.wardle.example.com/one\n"
    refusal = kubectl.fails("create", "-f", "-", stdin=_flunder("bad", reference="x", referenceType="Fish"))
    assert 'spec.referenceType: Unsupported value: "Fish": supported values: "Flunder", "Fischer"' in refusal
    assert "flunders" in kubectl("api-resources", "--api-group=wardle.example.com")
    kubectl("delete", "flunder", "one")
    assert "not found" in kubectl.fails("get", "flunder", "one")


def test_a_watch_goes_through(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_flunder("watched"))
    watching = kubectl.start("get", "flunders", "--watch", "-o", "name")
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "flunder.wardle.example.com/watched\n"
        kubectl("label", "flunder", "watched", "seen=yes")
        assert watching.stdout.readline() == "flunder.wardle.example.com/watched\n"
    finally:
        watching.kill()
        watching.communicate()


def test_the_other_server_asks_this_one_who_may_do_what(cluster: ServeProcess, kubectl: Kubectl) -> None:
    status, body = cluster.get(FLUNDERS, as_admin=False, token="reader-token")
    assert status == 403
    assert 'User "reader" cannot list resource "flunders" in API group "wardle.example.com"' in parsed(body)["message"]
    kubectl("create", "clusterrole", "flunder-reader", "--verb=get,list", "--resource=flunders.wardle.example.com")
    kubectl("create", "clusterrolebinding", "flunder-reader", "--clusterrole=flunder-reader", "--user=reader")
    _eventually(lambda: cluster.get(FLUNDERS, as_admin=False, token="reader-token")[0] == 200)


def test_nobody_passes_for_another_by_asking_directly(extension: ExtensionServer, kubectl: Kubectl) -> None:
    import ssl
    import urllib.error
    import urllib.request

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    forged = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    request = urllib.request.Request(f"https://127.0.0.1:{extension.port}{FLUNDERS}", headers=forged)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=context, timeout=PATIENCE)
    assert refused.value.code == 403
    assert "system:anonymous" in refused.value.read().decode()
    refused.value.close()


@pytest.mark.parametrize("end", [ExtensionServer.kill, ExtensionServer.stop])
def test_a_server_that_goes_is_missed_and_found_again_while_everything_else_goes_on(
    cluster: ServeProcess, extension: ExtensionServer, kubectl: Kubectl, end: Callable[[ExtensionServer], None]
) -> None:
    load = _Load(cluster)
    load.start()
    try:
        _eventually(lambda: load.count(200) > 20)
        end(extension)
        _eventually(lambda: load.count(503) > 5)
        extension.start()
        recovered = load.count(200)
        _eventually(lambda: load.count(200) > recovered + 20)
    finally:
        load.stop()
    assert load.statuses <= {200, 503}
    assert load.slowest_elsewhere < 10.0


class _Load(threading.Thread):
    """Asks for flunders and for namespaces in turn, on one connection each, and notes what it gets."""

    def __init__(self, cluster: ServeProcess) -> None:
        super().__init__()
        self._flunders, self._namespaces = cluster.connect(), cluster.connect()
        self._seen: list[int] = []
        self._stopping = threading.Event()
        self.slowest_elsewhere = 0.0

    @property
    def statuses(self) -> set[int]:
        return set(self._seen)

    def count(self, status: int) -> int:
        return self._seen.count(status)

    def run(self) -> None:
        while not self._stopping.is_set():
            self._flunders.request("GET", FLUNDERS)
            answer = self._flunders.getresponse()
            answer.read()
            self._seen.append(answer.status)
            began = time.monotonic()
            self._namespaces.request("GET", "/api/v1/namespaces/default")
            assert self._namespaces.getresponse().read()
            self.slowest_elsewhere = max(self.slowest_elsewhere, time.monotonic() - began)

    def stop(self) -> None:
        self._stopping.set()
        self.join(PATIENCE)
        self._flunders.close()
        self._namespaces.close()
