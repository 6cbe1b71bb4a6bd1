"""Why a mutation did not come about."""

from __future__ import annotations

from pilothouse.apiserver.cel.evaluation import OUT_OF_BUDGET


class MutationFailed(Exception):
    """A mutation that could not be made; the failure policy decides what follows."""

    @property
    def error_type(self) -> str:
        """The name of the error in metrics."""
        if str(self).startswith("compilation"):
            return "compile_error"
        if str(self).startswith(OUT_OF_BUDGET):
            return "out_of_budget"
        return "invalid_error"
