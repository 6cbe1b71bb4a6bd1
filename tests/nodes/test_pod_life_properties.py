"""Whatever a pod is and whatever happens to it: an end is an end, and what is said about it fits together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pod_lives import Life, container, pod

from pilothouse.nodes.behavior.model import PROBES, ContainerBehavior
from pilothouse.nodes.config import SimulationConfig

_PROBE = {"initialDelaySeconds": 1, "periodSeconds": 1, "failureThreshold": 1}
_ENDED = ("Succeeded", "Failed")

_probes = st.lists(st.sampled_from(PROBES), unique=True).map(lambda names: {f"{name}Probe": _PROBE for name in names})
_behaviors = st.builds(
    ContainerBehavior,
    start_after=st.sampled_from([None, 0.0, 2.0]),
    image_pull_error=st.sampled_from([None, None, None, "no"]),
    exit_after=st.sampled_from([None, 0.0, 0.3]),
    exit_code=st.sampled_from([None, 0, 1]),
    exit_times=st.sampled_from([None, 1, 3]),
    failing_probes=st.frozensets(st.sampled_from(PROBES)),
)
_actions = st.lists(st.sampled_from(["time", "restart", "delete", "behave"]), max_size=8)


@st.composite
def _lives(draw: st.DrawFn) -> Life:
    main = [container(f"m{number}", **draw(_probes)) for number in range(draw(st.integers(1, 2)))]
    init = tuple(
        container(f"i{number}", **({"restartPolicy": "Always"} if draw(st.booleans()) else {}))
        for number in range(draw(st.integers(0, 2)))
    )
    policy = draw(st.sampled_from(["Always", "OnFailure", "Never"]))
    names = [each["name"] for each in (*main, *init)]
    behaviors = {name: draw(_behaviors) for name in names if draw(st.booleans())}
    config = SimulationConfig(delay=draw(st.sampled_from([0.0, 0.05])), time_scale=draw(st.sampled_from([0.0, 0.05])))
    return Life(pod(*main, init=init, restartPolicy=policy), behaviors, config)


@settings(max_examples=60, deadline=None)
@given(_lives(), _actions)
def test_whatever_happens_what_is_said_fits_together(life: Life, actions: list[str]) -> None:
    for action in ("time", *actions):
        _act(life, action)
        for _ in range(12):
            life.step()
            _check(life)
            if life.due is None:
                break
            life.now = max(life.now + 0.001, life.due)
    life.delete()
    life.behaviors = {}
    for _ in range(200):
        life.step()
        if life.due is None:
            break
        life.now = max(life.now, life.due)
    assert life.status["phase"] in _ENDED, "a pod that is deleted ends"
    assert not any("running" in each["state"] for each in life.status["containerStatuses"])


def _act(life: Life, action: str) -> None:
    if action == "restart":
        life.restart()
    elif action == "delete":
        life.delete()
    elif action == "behave":
        life.behaviors = {}
    life.now += 0.5


def _check(life: Life) -> None:
    first_end = next((number for number, phase in enumerate(life.phases) if phase in _ENDED), None)
    if first_end is not None:
        assert len({*life.phases[first_end:]}) == 1, "nothing comes after an end"
    ready = life.condition("Ready")["status"] == "True"
    assert not ready or life.condition("ContainersReady")["status"] == "True"
    assert not ready or life.status["phase"] == "Running"
    for status in life.status["containerStatuses"]:
        assert len(status["state"]) == 1
        assert not status["ready"] or ("running" in status["state"] and status["started"])
    if life.status["phase"] in _ENDED:
        assert life.due is None
    if life.due is None or life.due > life.now:
        writes = life.writes
        life.step()
        assert life.writes == writes, "nothing is said twice"
