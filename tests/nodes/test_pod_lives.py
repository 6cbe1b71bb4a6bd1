"""What becomes of pods on simulated nodes, step by step and without a server."""

from __future__ import annotations

import pytest
from pod_lives import Life, container, pod

from pilothouse.client import Json
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.pods.one_container import problem_with
from pilothouse.nodes.pods.world import Obstacle, Refusal

PROBE: Json = {"initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 3, "successThreshold": 1}


def test_a_pod_runs_after_two_writes() -> None:
    life = Life(pod())
    life.step()
    assert life.container()["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert (life.status["phase"], life.status.get("podIP")) == ("Pending", None)
    life.pass_time()
    assert life.phases == ["Pending", "Running"]
    assert life.status["podIPs"] == [{"ip": "10.1.0.2"}]
    assert life.status["hostIP"] == "172.18.0.2"
    assert {each["type"]: each["status"] for each in life.status["conditions"]} == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    assert all("reason" not in each for each in life.status["conditions"])
    assert life.container()["containerID"].startswith("containerd://")
    assert life.reasons == ["Pulled", "Created", "Started"]


def test_init_containers_run_one_after_the_other_and_sidecars_stay() -> None:
    side = container("side", restartPolicy="Always", startupProbe=PROBE)
    life = Life(pod(init=(container("first"), side, container("last"))))
    life.step()
    assert life.container()["state"]["waiting"]["reason"] == "PodInitializing"
    assert life.condition("Initialized")["message"] == "containers with incomplete status: [first side last]"
    seen = []
    while life.due is not None:
        life.now = life.due
        life.step()
        seen.append([name for name in ("first", "side", "last", "app") if "running" in life.container(name)["state"]])
    running = [each for number, each in enumerate(seen) if number == 0 or each != seen[number - 1]]
    assert running == [["first"], [], ["side"], ["side", "last"], ["side"], ["side", "app"]]
    assert life.status["phase"] == "Running"
    assert life.container("first")["state"]["terminated"]["reason"] == "Completed"
    assert life.container("first")["ready"] is True


def test_a_pod_that_has_work_to_do_succeeds() -> None:
    life = Life(pod(restartPolicy="Never"))
    life.pass_time()
    assert life.phases == ["Pending", "Running", "Succeeded"]
    assert life.condition("Ready")["reason"] == life.condition("Initialized")["reason"] == "PodCompleted"
    life.pass_time()
    assert life.writes == 3


def test_sidecars_are_stopped_when_the_work_is_done() -> None:
    life = Life(pod(init=(container("side", restartPolicy="Always"),), restartPolicy="OnFailure"))
    life.pass_time()
    assert life.phases[-2:] == ["Running", "Succeeded"]
    assert "terminated" in life.container("side")["state"]


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Running"), ("Always", "Running")])
def test_the_restart_policy_decides_what_follows_a_failure(policy: str, phase: str) -> None:
    life = Life(pod(restartPolicy=policy), {"app": ContainerBehavior(exit_code=3, exit_after=0.1)})
    life.pass_time(20)
    assert life.status["phase"] == phase
    assert (life.container()["restartCount"] == 0) is (policy == "Never")


def test_containers_that_crash_are_restarted_later_and_later() -> None:
    life = Life(pod(), {"app": ContainerBehavior(exit_code=1, exit_after=0.1)}, SimulationConfig(time_scale=1.0))
    waits = set()
    while life.now < 1_700_000_000 + 1200:
        life.step()
        if "waiting" in life.container()["state"] and life.container()["restartCount"]:
            waits.add(life.container()["state"]["waiting"]["message"].split()[1])
        assert life.due is not None
        life.now = life.due
    assert waits == {"10s", "20s", "40s", "1m20s", "2m40s", "5m0s"}
    assert life.container()["lastState"]["terminated"]["exitCode"] == 1
    assert {"BackOff", "Pulled", "Created", "Started"} == {*life.reasons}


def test_a_container_that_crashes_twice_runs_then() -> None:
    life = Life(pod(), {"app": ContainerBehavior(exit_code=1, exit_after=0.1, exit_times=2)})
    life.pass_time()
    assert life.container()["restartCount"] == 2
    assert life.condition("Ready")["status"] == "True"
    assert life.due is None


def test_a_container_that_takes_too_much_memory_is_killed() -> None:
    life = Life(pod(restartPolicy="Never"), {"app": ContainerBehavior(oom_killed=True)})
    life.pass_time()
    ended = life.container()["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"], life.status["phase"]) == ("OOMKilled", 137, "Failed")


def test_an_image_that_can_not_be_pulled_is_tried_again_and_again() -> None:
    life = Life(pod(), {"app": ContainerBehavior(image_pull_error="not found")})
    reasons = []
    for _ in range(6):
        life.step()
        reasons.append(life.container()["state"]["waiting"]["reason"])
        assert life.due is not None
        life.now = life.due
    assert reasons == ["ContainerCreating", *("ErrImagePull", "ImagePullBackOff") * 2, "ErrImagePull"]
    assert life.status["phase"] == "Pending"
    life.behaviors = {}
    life.pass_time()
    assert life.status["phase"] == "Running"


def test_what_names_no_image_is_not_pulled_until_it_does() -> None:
    life = Life(pod(container("app", image="Nginx::1")))
    life.pass_time()
    waiting = life.container()["state"]["waiting"]
    assert waiting["reason"] == "InvalidImageName"
    assert waiting["message"].endswith("invalid reference format: repository name (library/Nginx) must be lowercase")
    assert life.reasons == ["InspectFailed", "Failed"]
    life.restart()
    life.pod["spec"]["containers"][0]["image"] = "nginx"
    life.pass_time()
    assert life.status["phase"] == "Running"


@pytest.mark.parametrize(
    ("image", "names_one"),
    [
        ("nginx", True),
        ("registry.k8s.io/pause:3.10", True),
        ("localhost:5000/a/b-c__d.e:V1", True),
        ("[::1]:5000/a", True),
        (f"a@sha256:{'0' * 64}", True),
        ("Team/app", True),
        ("a/B", False),
        ("nginx:", False),
        ("nginx:1:2", False),
        ("a//b", False),
        ("a@sha256:0", False),
        ("0" * 64, False),
        ("a" * 250, False),
        ("a" * 100_000, False),
    ],
)
def test_names_of_images_are_told_from_others(image: str, *, names_one: bool) -> None:
    assert (problem_with(image) == "") is names_one


def test_a_pod_that_its_node_refuses_has_failed() -> None:
    life = Life(pod(), refusal=Refusal("NodePorts", "Predicate NodePorts failed: no"))
    life.pass_time()
    assert life.phases == ["Failed"]
    assert (life.status["reason"], life.status["message"]) == (
        "NodePorts",
        "Pod was rejected: Predicate NodePorts failed: no",
    )
    assert life.reasons == ["NodePorts"]


def test_probes_succeed_after_their_delays() -> None:
    life = Life(pod(container("app", readinessProbe=PROBE, startupProbe=PROBE)), config=SimulationConfig(time_scale=1))
    life.pass_time(5)
    assert (life.container()["started"], life.container()["ready"]) == (False, False)
    life.pass_time(10)
    assert (life.container()["started"], life.container()["ready"]) == (True, True)


def test_a_container_whose_liveness_probe_fails_is_restarted() -> None:
    failing = ContainerBehavior(failing_probes=frozenset({"liveness"}))
    life = Life(pod(container("app", livenessProbe=PROBE)), {"app": failing}, SimulationConfig(time_scale=1))
    life.pass_time(41)
    assert life.container()["restartCount"] == 1
    assert life.reasons.count("Unhealthy") == life.reasons.count("Killing") == 1


def test_readiness_comes_and_goes_with_what_is_said() -> None:
    life = Life(pod(container("app", readinessProbe=PROBE)))
    life.pass_time()
    life.behaviors = {"app": ContainerBehavior(failing_probes=frozenset({"readiness"}))}
    life.pass_time()
    assert life.condition("Ready")["message"] == "containers with unready status: [app]"
    assert life.reasons[-1] == "Unhealthy"
    life.behaviors = {}
    life.pass_time()
    assert life.condition("Ready") == {**life.condition("Ready"), "status": "True"}
    assert "message" not in life.condition("Ready")


def test_readiness_gates_are_waited_for() -> None:
    life = Life(pod(readinessGates=[{"conditionType": "example.com/fed"}]))
    life.pass_time()
    assert life.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    assert life.condition("ContainersReady")["status"] == "True"
    life.status["conditions"].append({"type": "example.com/fed", "status": "True"})
    life.pass_time()
    assert life.condition("Ready")["status"] == "True"


def test_a_pod_that_is_deleted_ends_well() -> None:
    life = Life(pod())
    life.pass_time()
    life.delete()
    life.pass_time()
    assert life.status["phase"] == "Succeeded"
    assert life.container()["state"]["terminated"]["reason"] == "Completed"
    assert life.reasons[-1] == "Killing"


@pytest.mark.parametrize("behavior", [ContainerBehavior(image_pull_error="no"), ContainerBehavior(start_after=100.0)])
def test_a_pod_that_is_deleted_before_it_has_run_has_failed(behavior: ContainerBehavior) -> None:
    life = Life(pod(), {"app": behavior})
    life.pass_time(1)
    life.delete()
    life.pass_time()
    assert life.status["phase"] == "Failed"


def test_work_that_is_deleted_is_not_done() -> None:
    life = Life(pod(container("app", command=["sleep", "1000"]), restartPolicy="Never"))
    life.pass_time(10)
    life.delete()
    life.pass_time()
    assert (life.status["phase"], life.container()["state"]["terminated"]["exitCode"]) == ("Failed", 143)


def test_a_pod_has_a_deadline() -> None:
    life = Life(pod(activeDeadlineSeconds=5))
    life.pass_time()
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert life.now < 1_700_000_007


def test_a_pod_without_its_volumes_waits() -> None:
    life = Life(pod(), obstacle=Obstacle("", 'configmap "c" not found'))
    life.pass_time()
    assert life.container()["state"]["waiting"]["reason"] == "ContainerCreating"
    life.obstacle = None
    life.pass_time()
    assert life.status["phase"] == "Running"


def test_a_container_without_its_configuration_says_so() -> None:
    life = Life(pod(container("app"), container("b")), obstacle=Obstacle("app", 'secret "s" not found'))
    life.pass_time()
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
    assert (life.container()["state"]["waiting"], life.status["phase"]) == (waiting, "Pending")
    life.obstacle = None
    life.pass_time()
    assert life.status["phase"] == "Running"


def test_ephemeral_containers_join_a_pod_that_runs() -> None:
    life = Life(pod())
    life.pass_time()
    life.pod["spec"]["ephemeralContainers"] = [container("debugger")]
    life.pass_time()
    assert "running" in life.container("debugger")["state"]
    assert life.status["phase"] == "Running"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "echo hi; exit 3"], 3),
        (["/bin/false"], 1),
        (["sh", "-c", "sleep 2 && true"], 0),
        (["sh", "-c", "echo a && exit 0"], 0),
        (["sh", "-c", "grep -q x /etc/y || exit 7"], 0),
    ],
)
def test_simple_commands_end_as_they_would(command: list[str], code: int) -> None:
    life = Life(pod(container("app", command=command), restartPolicy="Never"))
    life.pass_time()
    assert life.container()["state"]["terminated"]["exitCode"] == code


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        ("while true; do echo polo; sleep 2; done", None),
        ("trap x TERM; while :; do sleep 1; done", None),
        ("prepare && sleep infinity", None),
        ("prepare --now | tee log && sleep 60; finish", 60),
        ("while true; do test -e done && break; done", 0),
        ("if test -e done\nthen\nexit 0\nelse\nsleep 60\nfi", 0),
    ],
)
def test_scripts_take_as_long_as_they_say(script: str, seconds: float | None) -> None:
    life = Life(pod(container("app", command=["sh", "-c", script]), restartPolicy="Never"))
    begun = life.now
    life.pass_time(7200)
    if seconds is None:
        assert life.status["phase"] == "Running"
    else:
        assert life.status["phase"] == "Succeeded"
        assert seconds <= life.now - begun < seconds + 1


def test_after_a_restart_of_the_server_nothing_changes() -> None:
    for life in (
        Life(pod(container("app", readinessProbe=PROBE))),
        Life(pod(restartPolicy="Never")),
        Life(pod(init=(container("i"), container("s", restartPolicy="Always")))),
        Life(pod(), {"app": ContainerBehavior(exit_code=1, exit_after=0.1, exit_times=3)}),
    ):
        life.pass_time()
        writes = life.writes
        life.restart()
        life.pass_time()
        assert life.writes == writes


def test_a_resize_is_done_at_once_or_never() -> None:
    small, large, huge = ({"requests": {"cpu": cpu}} for cpu in ("100m", "1", "64"))
    life = Life(pod(container("app", resources=small)), allocatable={"cpu": "32"})
    life.pass_time()
    _resize(life, huge)
    assert life.container()["resources"] == small
    pending = life.condition("PodResizePending")
    assert (pending["reason"], pending["observedGeneration"]) == ("Infeasible", 2)
    assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 64000, capacity: 32000"
    assert life.reasons[-1] == "ResizeInfeasible"
    _resize(life, large)
    assert life.container()["resources"] == large
    assert life.container()["allocatedResources"] == {"cpu": "1"}
    assert life.reasons[-2:] == ["ResizeStarted", "ResizeCompleted"]
    assert life.status["observedGeneration"] == 3
    assert all(each["type"] != "PodResizePending" for each in life.status["conditions"])
    assert life.container()["restartCount"] == 0


def test_a_container_whose_policy_says_so_is_restarted_for_a_resize_once() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    policy.append({"resourceName": "memory", "restartPolicy": "RestartContainer"})
    small = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    life = Life(pod(container("app", resources=small, resizePolicy=policy)))
    life.pass_time()
    _resize(life, {"requests": {"cpu": "200m", "memory": "1Gi"}})
    assert life.container()["restartCount"] == 0
    larger = {"requests": {"cpu": "200m", "memory": "2Gi"}}
    _resize(life, larger)
    assert (life.container()["restartCount"], life.container()["resources"]) == (1, larger)
    assert life.condition("Ready")["status"] == "True"


def _resize(life: Life, resources: Json) -> None:
    life.pod["spec"]["containers"][0]["resources"] = resources
    life.pod["metadata"]["generation"] += 1
    life.pass_time()
