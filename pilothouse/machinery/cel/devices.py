"""The expressions that select devices. They see one device: its driver, attributes and capacity."""

from __future__ import annotations

from pilothouse.machinery.cel.environment import Compiled, Environment

# Attributes and capacity are declared by their full names, because no message can have maps of maps.
_DEVICE = Environment(
    variables=(
        ("device", "kubernetes.DRADevice"),
        ("device.attributes", "map<string, map<string, dyn>>"),
        ("device.capacity", "map<string, map<string, kubernetes.Quantity>>"),
    ),
    bindings=True,
)


def compile_device_selector(expression: str) -> Compiled:
    """Raises CompilationFailed."""
    return _DEVICE.compile(expression)
