"""The most that CEL's own operators and functions can cost. Those that are not here cost one."""

from __future__ import annotations

from pilothouse.machinery.cel.cost.call_costs import CallCost, Operand
from pilothouse.machinery.cel.cost.sizes import LIMITLESS, PATTERN, TRAVERSAL, Size, product, scaled, total

_COMPARISONS = {"equals", "not_equals"} | {
    f"{order}_{kind}" for order in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
}


def operator_cost(overload: str, target: Operand | None, args: list[Operand], costs: list[int]) -> CallCost:
    """`costs` are those of the arguments, which are included."""
    spent = total(*costs)
    if overload in ("logical_or", "logical_and"):
        return CallCost(spent)
    if overload == "conditional":
        return CallCost(total(costs[0], max(costs[1], costs[2])), args[1].size | args[2].size)
    if overload in _COMPARISONS:
        return CallCost(total(scaled(min(args[0].size.most, args[1].size.most), TRAVERSAL), spent))
    if overload in ("add_string", "add_bytes", "add_list"):
        size = args[0].size + args[1].size
        own = 1 if overload == "add_list" else scaled(size.most, TRAVERSAL)
        return CallCost(total(own, spent), size)
    if target is not None and args:
        return _member_cost(overload, target, args[0], spent)
    return _function_cost(overload, args, spent)


def _member_cost(overload: str, target: Operand, arg: Operand, spent: int) -> CallCost:
    match overload:
        case "starts_with_string" | "ends_with_string":
            return CallCost(total(scaled(arg.size.most, TRAVERSAL), spent))
        case "matches_string":
            text = scaled(total(target.size.most, 1), TRAVERSAL)
            return CallCost(total(product(text, scaled(arg.size.most, PATTERN)), spent))
        case "contains_string":
            both = product(scaled(target.size.most, TRAVERSAL), scaled(arg.size.most, TRAVERSAL))
            return CallCost(total(both, spent))
        case "string_format":
            return CallCost(total(scaled(target.size.most, TRAVERSAL), spent))
    return CallCost(total(1, spent))


def _function_cost(overload: str, args: list[Operand], spent: int) -> CallCost:
    if overload == "in_list":
        return CallCost(total(args[1].size.most, spent))
    if overload == "string_to_bytes":
        size = args[0].size
        return CallCost(total(scaled(size.most, TRAVERSAL), spent), Size(size.least, min(size.most * 4, LIMITLESS)))
    if overload == "bytes_to_string":
        size = args[0].size
        return CallCost(total(scaled(size.most, TRAVERSAL), spent), Size(size.least // 4, size.most))
    return CallCost(total(1, spent))
