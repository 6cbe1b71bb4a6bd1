"""Expressions in the forms in which policies and conditions keep them: compiled, or with what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.cel.admission import AdmissionCompiler, CompilationFailed, Declarations
from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.program import Program, ProgramFailed
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Expression:
    source: str
    program: Program | None = None
    problem: str = ""
    """Why it has no program."""


@dataclass(frozen=True, slots=True)
class NamedExpression:
    name: str
    expression: Expression


def compiled(
    compiler: AdmissionCompiler, source: str, declarations: Declarations, *, types: Sequence[str] = ()
) -> Expression:
    """`types`: those that the expression may evaluate to; any if there are none."""
    try:
        found = compiler.compile(source, declarations)
    except CompilationFailed as error:
        return Expression(source, problem=f"compilation failed: {error}")
    return _checked(source, found.type, found.program, types)


def compiled_in(known: Environment, source: str, *, types: Sequence[str]) -> Expression:
    """`types`: those that the expression may evaluate to."""
    try:
        found = known.compile(source)
    except CompilationFailed as error:
        return Expression(source, problem=f"compilation failed: {error}")
    return _checked(source, found.type, found.program, types)


def compiled_variable(compiler: AdmissionCompiler, name: str, source: str, declarations: Declarations) -> Expression:
    """Compile the expression of a variable, and declare it as `variables.name` to the expressions after it."""
    try:
        found = compiler.declare_variable(name, source, declarations)
    except CompilationFailed as error:
        return Expression(source, problem=f"compilation failed: {error}")
    return _planned(source, found.program)


def _checked(source: str, kind: str, program: SyntaxTree, types: Sequence[str]) -> Expression:
    if types and kind not in types:
        wanted = types[0] if len(types) == 1 else f"one of [{' '.join(types)}]"
        return Expression(source, problem=f"must evaluate to {wanted} but got {kind}")
    return _planned(source, program)


def _planned(source: str, program: SyntaxTree) -> Expression:
    try:
        return Expression(source, Program(program))
    except ProgramFailed as error:
        return Expression(source, problem=f"program instantiation failed: {error}")
