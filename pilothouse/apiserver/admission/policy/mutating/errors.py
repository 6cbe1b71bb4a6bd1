"""Errors of mutations."""

from __future__ import annotations

from pilothouse.apiserver.cel.evaluation import OUT_OF_BUDGET


class MutationFailed(Exception):
    """A failed mutation; subject to the failure policy."""

    @property
    def error_type(self) -> str:
        """Return the metric label of the error."""
        if str(self).startswith("compilation"):
            return "compile_error"
        if str(self).startswith(OUT_OF_BUDGET):
            return "out_of_budget"
        return "invalid_error"
