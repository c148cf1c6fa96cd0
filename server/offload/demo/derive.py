"""Writes a unittest file for one Python function from its source, and mends it from what the tests printed.

This is what the scripted model knows: examples in a docstring are promises, annotations say which values are worth a try, and what
is guessed wrongly is learnt from the run. It knows no conversation, no tools and nothing of offload.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from dataclasses import dataclass

# What a function of this kind gives for nothing, and what "nothing" looks like: the first guess of every edge case.
NOTHING = {
    "str": '""',
    "int": "0",
    "float": "0.0",
    "bool": "False",
    "list": "[]",
    "dict": "{}",
    "tuple": "()",
    "set": "set()",
    "None": "None",
}
ORDINARY = {"str": '"tea"', "int": "3", "float": "2.5", "bool": "True"}

# The edges that a follow-up can ask for by name; the first two are tried from the start.
EDGES = {
    "empty": {kind: NOTHING[kind] for kind in ("str", "list", "dict", "tuple", "set")},
    "zero": {"int": "0", "float": "0.0"},
    "negative": {"int": "-5", "float": "-2.5"},
    "large": {"int": "1_000_000", "float": "1e12"},
    "long": {"str": '"tea " * 50'},
    "accent": {"str": '"Crème Brûlée"'},
}
FIRST_EDGES = ("empty", "zero")
DOCUMENTED = "test_does_what_its_documentation_says"


@dataclass(frozen=True, slots=True)
class Subject:
    """A function under test. `module` is dotted; `owner` is the class that it belongs to."""

    module: str
    owner: ast.ClassDef | None
    function: ast.FunctionDef

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.function.name}" if self.owner else self.function.name

    @property
    def test_path(self) -> str:
        """The usual place: one file for all blocks of a module. Tasks that run side by side may meet there."""
        return f"tests/test_{self.module.rpartition('.')[2]}.py"

    @property
    def own_test_path(self) -> str:
        """A file for this block alone, where the usual one holds somebody else's tests already."""
        return "tests/test_" + f"{self.module.rpartition('.')[2]}_{self.name}".replace(".", "_").lower() + ".py"


def find_subject(path: str, text: str, block: str) -> Subject | None:
    """The first function of the file `path` whose source is in `block`, indented or not; None when there is none."""
    wanted = _flat(block)
    tree = ast.parse(text)
    owners = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for owner in [None, *owners]:
        for node in owner.body if owner else tree.body:
            if isinstance(node, ast.FunctionDef) and _flat(ast.get_source_segment(text, node) or "") in wanted:
                return Subject(path.removesuffix(".py").replace("/", "."), owner, node)
    return None


def _flat(source: str) -> str:
    return " ".join(source.split())


def draft(subject: Subject) -> str:
    """The first version of the test file."""
    title = "".join(word.capitalize() for word in re.split(r"[._]", subject.name))
    cases = "\n".join([*_documented(subject), *edge_cases(subject, FIRST_EDGES)])
    return (
        f"import unittest\n\nfrom {subject.module} import {subject.name.partition('.')[0]}\n\n\n"
        f"class {title}Test(unittest.TestCase):\n"
        f"{cases or _importable(subject)}\n\n"
        'if __name__ == "__main__":\n    unittest.main()\n'
    )


def _importable(subject: Subject) -> str:
    return f"    def test_can_be_called(self):\n        self.assertTrue(callable({subject.name}))\n"


def _documented(subject: Subject) -> list[str]:
    examples = doctest.DocTestParser().get_examples(ast.get_docstring(subject.function) or "")
    lines: list[str] = []
    for example in examples:
        source, want = example.source.strip(), example.want.strip()
        if example.exc_msg is not None:
            lines += [f"with self.assertRaises({example.exc_msg.partition(':')[0].strip()}):", f"    {source}"]
        elif want:
            lines.append(f"self.assertEqual({source}, {want})")
        else:
            lines.append(source)
    return [_method(DOCUMENTED, lines)] if lines else []


def edge_cases(subject: Subject, edges: tuple[str, ...]) -> list[str]:
    """One test per parameter and edge that fits its annotation, each expecting nothing of the annotated kind."""
    function = subject.function
    guess = NOTHING.get(_kind(function.returns))
    parameters = function.args.args[1 if subject.owner else 0 :]
    ordinary = {parameter.arg: _ordinary(parameter.annotation) for parameter in parameters}
    if guess is None or None in ordinary.values() or not _plain(subject):
        return []
    called = f"{subject.owner.name}().{function.name}" if subject.owner else function.name
    cases = []
    for edge in edges:
        for parameter in parameters:
            value = EDGES[edge].get(_kind(parameter.annotation))
            if value is not None:
                arguments = ", ".join(str(word) for word in {**ordinary, parameter.arg: value}.values())
                line = f"self.assertEqual({called}({arguments}), {guess})"
                cases.append(_method(f"test_{edge}_{parameter.arg}", [line]))
    return cases


def _plain(subject: Subject) -> bool:
    """Whether a call with all arguments in their order is enough; a method's object must need nothing to be made."""
    owner, function = subject.owner, subject.function
    if function.decorator_list or function.args.posonlyargs or function.args.kwonlyargs:
        return False
    if owner is None:
        return True
    makers = [node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    needed = [len(maker.args.args) - len(maker.args.defaults) for maker in makers]
    return not owner.bases and not owner.decorator_list and all(count == 1 for count in needed)


def _method(name: str, lines: list[str]) -> str:
    return "\n        ".join([f"    def {name}(self):", *lines]) + "\n"


def _kind(annotation: ast.expr | None) -> str:
    """The annotation without what is in brackets; of alternatives the first."""
    if isinstance(annotation, ast.BinOp):
        return _kind(annotation.left)
    if isinstance(annotation, ast.Subscript):
        return _kind(annotation.value)
    return ast.unparse(annotation) if annotation else ""


def _ordinary(annotation: ast.expr | None) -> str | None:
    """A value as anybody would pass it, None when the annotation says too little."""
    kind = _kind(annotation)
    if kind in ORDINARY or not isinstance(annotation, ast.Subscript):
        return ORDINARY.get(kind)
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    parts = [_ordinary(part) for part in inner]
    if None in parts:
        return None
    joined = ", ".join(str(part) for part in parts)
    return {"list": f"[{joined}]", "tuple": f"({joined},)"}.get(kind)


def extended(text: str, cases: list[str]) -> str:
    """The test file with further tests at the end of its class; those that are there already are left out."""
    new = [case for case in cases if case.split("(")[0] not in text]
    head, mark, tail = text.rpartition('\n\nif __name__ == "__main__":')
    return head + "".join(f"\n{case}" for case in new) + mark + tail


# As git marks a place that two sides changed; what both began from is there in some styles.
CONFLICT = re.compile(
    r"^<{7,}[^\n]*\n(?P<ours>.*?)(?:^\|{7,}[^\n]*\n.*?)?^={7,}\n(?P<theirs>.*?)^>{7,}[^\n]*\n", re.MULTILINE | re.DOTALL
)


def united(text: str) -> str:
    """A test file with both sides of each marked conflict: tests that two tasks wrote do not exclude each other."""
    return CONFLICT.sub(lambda found: _both(found["ours"], found["theirs"]), text)


def _both(ours: str, theirs: str) -> str:
    """One after the other; what both begin and end with is there once."""
    one, other = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    head = common(one, other)
    tail = common(one[head:][::-1], other[head:][::-1])
    middle = [one[head : len(one) - tail], ["\n", "\n"], other[head : len(other) - tail]]
    return "".join(line for part in (one[:head], *middle, one[len(one) - tail :]) for line in part)


def common(one: list[str], other: list[str]) -> int:
    """How many lines at the beginning are the same."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class Mended:
    """`learnt` names the tests whose expectation was corrected, `broken` those that show a broken promise of the code."""

    text: str
    learnt: tuple[str, ...]
    broken: tuple[str, ...]


def mend(text: str, output: str) -> Mended:
    """Corrects guessed expectations to what the run showed. What the documentation promises is never corrected."""
    lines = text.split("\n")
    learnt, broken = [], []
    for name, section in re.findall(r"^(?:FAIL|ERROR): (\w+)(.*?)(?=^={70}$|\Z)", output, re.MULTILINE | re.DOTALL):
        trace = section.rpartition("Traceback (most recent call last):\n")[2]
        place = re.search(r'^  File ".*", line (\d+), in (test_\w+)$', trace, re.MULTILINE)
        shown = re.search(r"^(\w[\w.]*)(?:: (.*))?$", trace, re.MULTILINE)
        new = None
        if place and shown and place[2] != DOCUMENTED:
            new = _corrected(lines[int(place[1]) - 1], shown[1], shown[2] or "")
        if place and new:
            lines[int(place[1]) - 1] = new
            learnt.append(place[2])
        else:
            broken.append(name)
    return Mended("\n".join(lines), tuple(learnt), tuple(broken))


def _corrected(line: str, exception: str, message: str) -> str | None:
    """The line with the expectation that the run showed; None for a line that is not one of our guesses."""
    found = re.fullmatch(r"( *)self\.assertEqual\((.*), (\S+)\)", line)
    if found is None:
        return None
    indent, call, guess = found.groups()
    if exception != "AssertionError":
        known = exception if hasattr(builtins, exception) else "Exception"
        return f"{indent}with self.assertRaises({known}):\n{indent}    {call}"
    value = ast.literal_eval(guess) if guess != NOTHING["set"] else set()
    actual = re.sub(r"^\w+ differ: ", "", message).removesuffix(f" != {value!r}")
    try:
        ast.literal_eval(actual)
        whole = not re.search(r"\[\d+ chars\]", actual)
    except (SyntaxError, ValueError):
        whole = False
    if not whole:  # unittest shortens what is long, and of a set it shows the difference: the kind is all that is known
        return f"{indent}self.assertIsInstance({call}, {type(value).__name__})"
    return f"{indent}self.assertEqual({call}, {actual})"
