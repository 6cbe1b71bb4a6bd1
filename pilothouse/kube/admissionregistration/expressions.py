"""Validation of CEL expressions of webhooks and policies: compilation and result type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.kube.validation.fields import qualified_name
from pilothouse.machinery.cel.admission import AdmissionCompiler, CompilationFailed, Compiled, Declarations
from pilothouse.machinery.cel.program import Program, ProgramFailed
from pilothouse.machinery.field import Errors, FieldError, Path, duplicate, internal, invalid, required, too_many
from pilothouse.machinery.objects import Json, text

MAX_MATCH_CONDITIONS = 64
NO_EXPRESSION = "expression is not specified"

Types: TypeAlias = tuple[str, ...]

BOOL: Types = ("bool",)
STRING: Types = ("string",)
STRING_OR_NULL: Types = ("string", "null_type")
APPLY_CONFIGURATION: Types = ("Object",)
JSON_PATCH: Types = ("list(JSONPatch)",)

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)


def validate_expression(
    compiler: AdmissionCompiler, expression: str, path: Path, *, declarations: Declarations, types: Types
) -> Errors:
    try:
        compiled = compiler.compile(expression, declarations)
    except CompilationFailed as error:
        yield _failed(expression, path, error)
    else:
        if compiled.type not in types:
            wanted = types[0] if len(types) == 1 else f"one of [{' '.join(types)}]"
            yield invalid(path, expression, f"must evaluate to {wanted} but got {compiled.type}")
        else:
            yield from _validate_program(compiled, expression, path)


def _validate_program(compiled: Compiled, expression: str, path: Path) -> Errors:
    """Constant parts of an expression are evaluated when the expression is written."""
    try:
        Program(compiled.program)
    except ProgramFailed as error:
        yield internal(path, f"program instantiation failed: {error}")


def _failed(expression: str, path: Path, error: CompilationFailed) -> FieldError:
    return invalid(path, expression, f"compilation failed: {error}")


def validate_match_conditions(conditions: Sequence[Json], path: Path, *, params: bool) -> Errors:
    """Validate match conditions. Variables of the policy are not available."""
    if len(conditions) > MAX_MATCH_CONDITIONS:
        yield too_many(path, len(conditions), MAX_MATCH_CONDITIONS)
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        yield from _validate_match_condition(condition, path.index(position), params=params)
        name = text(condition, "name")
        if name and name in seen:
            yield duplicate(path.index(position).child("name"), name)
        seen.add(name)


def _validate_match_condition(condition: Json, path: Path, *, params: bool) -> Errors:
    expression, name = text(condition, "expression").strip(), text(condition, "name")
    if not expression:
        yield required(path.child("expression"))
    else:
        declarations = Declarations(params=params)
        where = path.child("expression")
        yield from validate_expression(AdmissionCompiler(), expression, where, declarations=declarations, types=BOOL)
    if not name:
        yield required(path.child("name"))
    else:
        yield from qualified_name(name, path.child("name"))


def validate_variable(compiler: AdmissionCompiler, variable: Json, path: Path, *, params: bool) -> Errors:
    """Validate the variable and declare it for later expressions."""
    name, expression = text(variable, "name"), text(variable, "expression")
    if not name.strip():
        yield required(path.child("name"), "name is not specified")
    elif not is_identifier(name):
        yield invalid(path.child("name"), name, "must be a valid CEL identifier")
    if not expression.strip():
        yield required(path.child("expression"), NO_EXPRESSION)
        return
    declarations = Declarations(params=params)
    try:
        if is_identifier(name):
            compiled = compiler.declare_variable(name, expression, declarations)
        else:
            compiled = compiler.compile(expression, declarations)
    except CompilationFailed as error:
        yield _failed(expression, path.child("expression"), error)
    else:
        yield from _validate_program(compiled, expression, path.child("expression"))


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED
