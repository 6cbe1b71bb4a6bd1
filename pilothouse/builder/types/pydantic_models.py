"""Models of pydantic, where authors use it. It is never imported here: who has a model has imported it."""

from __future__ import annotations

import sys
from typing import Any

from pilothouse.builder.types.form import Form, Place


def is_model(type_: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)


def model_form(model: Any, at: Place) -> Form:
    return at.refuse(f"{model.__qualname__} has no schema")
