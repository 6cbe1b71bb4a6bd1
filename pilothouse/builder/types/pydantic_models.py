"""Models of pydantic, where authors use it. It is never imported here: who has a model has imported it.

Names on the wire are pydantic's aliases: `ConfigDict(alias_generator=to_camel)` gives those that Kubernetes has.
"""

from __future__ import annotations

import sys
from typing import Any

from pilothouse.builder.types.form import Form, FormOf, Place, as_it_is, nothing
from pilothouse.builder.types.hints import hint_of
from pilothouse.builder.types.json_schemas import structural_schema
from pilothouse.machinery.objects import Json


def is_model(type_: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)


def write_model(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def model_form(model: Any, at: Place, form_of: FormOf) -> Form:
    """Raises TypeError for a model that no structural schema can describe."""
    schema = structural_schema(model.model_json_schema(by_alias=True), at)
    forms = {name: _form_or_anything(info.annotation, at.field(name), form_of) for name, info in _fields(model)}
    absent = {info.alias or name: None for name, info in _fields(model) if _may_be_absent(info)}

    def read(value: Any) -> Any:
        try:
            return model.model_validate(absent | value if isinstance(value, dict) else value)
        except ValueError:  # validation is left to the schema, so that what is wrong is read as well as it can be
            return _constructed(model, forms, value) if isinstance(value, dict) else value

    return Form(schema, read, lambda: read({}))


def _fields(model: Any) -> list[tuple[str, Any]]:
    return list(model.model_fields.items())


def _may_be_absent(info: Any) -> bool:
    """None means absent, but pydantic wants to be told so."""
    return info.is_required() and hint_of(info.annotation).allows_none


def _form_or_anything(annotation: Any, at: Place, form_of: FormOf) -> Form:
    """Pydantic knows more types than there are forms."""
    try:
        return form_of(hint_of(annotation), at)
    except TypeError:
        return Form({}, as_it_is, nothing)


def _constructed(model: Any, forms: dict[str, Form], value: Json) -> Any:
    """An instance that was not validated. What is missing is what the model or its type's zero value says."""
    given: dict[str, Any] = {}
    for name, info in _fields(model):
        found = value.get(info.alias or name)
        if found is not None:
            given[name] = forms[name].read(found)
        elif info.is_required():
            given[name] = forms[name].zero()
    return model.model_construct(**given)
