"""mypy plugin: classes with `@kind` have `metadata`, `status` and the parameter `metadata`, also without `Object`.

Enable the plugin in the configuration of mypy:

    [tool.mypy]
    plugins = ["pilothouse.operator.mypy"]
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import ARG_NAMED_OPT, Argument, CallExpr, Expression, FuncDef, NameExpr, RefExpr, TypeInfo, Var
from mypy.plugin import ClassDefContext, Plugin
from mypy.plugins.common import add_attribute_to_class
from mypy.plugins.dataclasses import dataclass_class_maker_callback
from mypy.types import AnyType, CallableType, Instance, Type, TypeOfAny, UnionType

KIND = "pilothouse.operator.kinds.kind"
OBJECT = "pilothouse.operator.kinds.Object"
STATUS = "pilothouse.operator.conditions.Status"
METADATA = "pilothouse.builder.resource.ObjectMeta"


class KindPlugin(Plugin):
    """Adds the attributes of a kind where the decorator stands."""

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        """Return the hook of `@kind`."""
        return _declare if fullname == KIND else None


def _declare(context: ClassDefContext) -> bool:
    """Make the class a dataclass, as its decorator says, and add the attributes. False asks mypy to call again."""
    if not dataclass_class_maker_callback(context):
        return False
    api, info = context.api, context.cls.info
    metadata = api.named_type_or_none(METADATA)
    status = _status_type(context)
    if metadata is None or status is None:
        return False
    if not info.has_base(OBJECT):
        add_attribute_to_class(api, context.cls, "metadata", metadata)
        if not isinstance(status, bool):
            add_attribute_to_class(api, context.cls, "status", status)
    json = api.named_type("builtins.dict", [api.named_type("builtins.str"), AnyType(TypeOfAny.explicit)])
    _accept_metadata(info, UnionType([metadata, json]))
    return True


def _status_type(context: ClassDefContext) -> Type | bool | None:
    """Return the type of the status; False without a status, None if its class is not known yet."""
    declared = _argument(context.reason, "status")
    if isinstance(declared, NameExpr) and declared.fullname == "builtins.True":
        return context.api.named_type_or_none(STATUS)
    if not isinstance(declared, RefExpr) or declared.fullname in ("builtins.False", "builtins.None"):
        return False
    if isinstance(declared.node, TypeInfo):
        return Instance(declared.node, [AnyType(TypeOfAny.from_omitted_generics) for _ in declared.node.type_vars])
    return None if declared.node is None else AnyType(TypeOfAny.special_form)


def _argument(call: Expression, name: str) -> Expression | None:
    if not isinstance(call, CallExpr):
        return None
    return next((value for value, given in zip(call.args, call.arg_names, strict=True) if given == name), None)


def _accept_metadata(info: TypeInfo, metadata: Type) -> None:
    """Add the parameter `metadata` to the constructor that mypy's dataclass plugin has made."""
    found = info.names.get("__init__")
    if found is None or not isinstance(found.node, FuncDef) or not isinstance(found.node.type, CallableType):
        return
    function, created = found.node, found.node.type
    if "metadata" not in created.arg_names:
        argument = Argument(Var("metadata", metadata), metadata, None, ARG_NAMED_OPT)
        function.arguments.append(argument)
        function.arg_names.append("metadata")
        function.arg_kinds.append(ARG_NAMED_OPT)
        function.type = created.copy_modified(
            arg_types=[*created.arg_types, metadata],
            arg_kinds=[*created.arg_kinds, ARG_NAMED_OPT],
            arg_names=[*created.arg_names, "metadata"],
        )


def plugin(version: str) -> type[Plugin]:
    """Entry point of mypy."""
    return KindPlugin
