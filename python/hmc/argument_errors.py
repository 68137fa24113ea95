"""Sentences for calls whose arguments fit no signature, made from what pybind11 says of them."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

KINDS = {"str": ((str,), "a str"), "int": ((int,), "an integer"), "float": ((int, float), "a number"),
         "bool": ((bool,), "True or False"), "bytes": ((bytes, str), "bytes"),
         "list": ((list,), "a list"), "dict": ((dict,), "a dict"), "tuple": ((tuple,), "a tuple")}


class Parameter(NamedTuple):
    """One of a signature."""

    name: str
    type: str
    optional: bool
    keyword_only: bool


def split(text: str) -> List[str]:
    """The parts between commas that are in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def parameters_of(signature: str) -> List[Parameter]:
    """Of "(self: hmc.Node, address: str, timeout: handle = 30) -> hmc.Peer"."""
    inside = signature[signature.index("(") + 1:signature.rindex(")")] if "(" in signature else ""
    found, keyword_only = [], False
    for part in split(inside.split(") -> ")[0]):
        if part in ("*", "/"):
            keyword_only = keyword_only or part == "*"
            continue
        declared, _, default = part.partition(" = ")
        name, _, kind = declared.partition(": ")
        found.append(Parameter(name, kind, bool(default), keyword_only))
    return found


def misfit(value: Any, kind: str) -> Optional[str]:
    """What to pass instead; None where it fits, or where we cannot tell."""
    optional = re.match(r"(?:typing\.)?Optional\[(.*)\]$", kind)
    if optional:
        inner = misfit(value, optional.group(1))
        return None if value is None or inner is None else inner + ", or None"
    if kind in KINDS:
        types, words = KINDS[kind]
        # A bool is an integer to Python, and seldom meant as one.
        fits = isinstance(value, types) and (not isinstance(value, bool) or kind == "bool")
        return None if fits or hasattr(value, "__index__") and kind in ("int", "float") else words
    made = re.match(r"hmc(?:\._core)?\.(\w+)$", kind)
    if made and made.group(1) not in {one.__name__ for one in type(value).__mro__}:
        return "a " + made.group(1)
    return None


def shown(value: Any) -> str:
    """A value as short as a sentence can bear."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def problem(wanted: List[Parameter], given: Tuple[Any, ...],
            named: Dict[str, Any]) -> Tuple[int, str]:
    """How many arguments fit one signature, and what is wrong with the others."""
    positional = [one for one in wanted if not one.keyword_only]
    names = [one.name for one in wanted]
    if len(given) > len(positional):
        return 0, "it takes %d arguments without a name, not %d; the others are named: %s" % (
            len(positional), len(given), ", ".join(names[len(positional):]) or "there are none")
    for name in named:
        if name not in names:
            return 0, "there is no argument %s; %s" % (
                name, "there are " + ", ".join(names) if names else "it takes none")
    values = dict(zip(names, given))
    values.update(named)
    for place, one in enumerate(wanted):
        if one.name not in values:
            if not one.optional:
                return place, "%s is missing" % one.name
            continue
        instead = misfit(values[one.name], one.type)
        if instead:
            return place, "%s is %s: pass %s" % (one.name, shown(values[one.name]), instead)
    return len(values), "these arguments do not fit together: %s" % ", ".join(
        "%s=%s" % (name, shown(value)) for name, value in values.items())


def reworded(text: str, given: Tuple[Any, ...], named: Dict[str, Any]) -> str:
    """One sentence about the overload that comes nearest."""
    name = text.partition("(")[0]
    best = (-1, "these arguments do not fit")
    for signature in re.findall(r"^ +\d+\. (.*)$", text, re.M):
        wanted, values = parameters_of(signature), given
        if name == "__init__":
            values = given[1:]
        elif wanted and wanted[0].name == "self":
            wanted, values = wanted[1:], given[1:]
        best = max(best, problem(wanted, values, named), key=lambda one: one[0])
    made = re.search(r"^ +1\. (?:\w+\.)*(\w+)\(", text, re.M)
    if name == "__init__" and made:
        name = made.group(1)
    return "%s(): %s" % (name, best[1])
