"""Python functions drawn at random, as source: what they compute in Python is what kernels must compute."""

from __future__ import annotations

import random
import types
from pathlib import Path

FLOATS = ("x", "y", "u", "v")
INTEGERS = ("n", "m", "k")


class Drawn:
    """Draws the body of a function of floats x, y and integers n, m that never raises and always ends."""

    def __init__(self, seed: int, *, loops: bool) -> None:
        self.draw = random.Random(seed)
        self.loops = loops
        self.lines: list[str] = []
        self.depth = 1
        self.in_loop = 0
        self.counters = 0

    def source(self, name: str) -> str:
        """The function's text."""
        self.line("u = x * 0.5")
        self.line("v = 1.0")
        self.line("k = 3")
        if self.loops:
            self.line("a = [0.0] * 4")
            self.line("b = [n, 2, m % 5]")
        for _ in range(5):
            self.statement(2)
        self.line("return u + v * y, k, " + self.condition(2))
        return "\n".join(["@fc.kernel", f"def {name}(x, y, n, m):", *self.lines, ""])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, depth: int) -> None:
        self.depth += 1
        for _ in range(self.draw.randint(1, 2)):
            self.statement(depth - 1)
        self.depth -= 1

    def statement(self, depth: int) -> None:
        kinds = ["float", "float", "integer", "symbol", "swap"]
        if depth > 0:
            kinds += ["if", "if"] + ["range", "computed", "while", "item", "item"] * self.loops
        if self.in_loop and self.depth > 2:
            kinds += ["break", "continue"]
        kind = self.draw.choice(kinds)
        match kind:
            case "float":
                self.line(f"{self.draw.choice(('u', 'v'))} = {self.number(2)}")
            case "integer":
                self.line(f"{self.draw.choice(('n', 'k'))} = ({self.whole(2)}) % 1000")
            case "symbol":
                self.line(f"u {self.draw.choice(('+', '-', '*'))}= {self.number(1)}")
            case "swap":
                self.line("u, v = v, u")
            case "if":
                self.line(f"if {self.condition(2)}:")
                self.block(depth)
                if self.draw.random() < 0.5:
                    self.line(f"elif {self.condition(1)}:")
                    self.block(depth)
                if self.draw.random() < 0.5:
                    self.line("else:")
                    self.block(depth)
                elif not self.in_loop and self.draw.random() < 0.3:
                    self.line("else:")
                    self.line(f"    return {self.number(1)}, {self.whole(1)} % 100, {self.condition(1)}")
            case "item":
                if self.draw.random() < 0.5:
                    self.line(f"a[{self.whole(1)} % 4] = {self.number(1)}")
                else:
                    self.line(f"b[{self.draw.randint(-3, 2)}] += {self.draw.randint(-5, 5)}")
            case "break" | "continue":
                self.line(f"if {self.condition(1)}:")
                self.line(f"    {kind}")
            case _:
                self.loop(kind, depth)

    def loop(self, kind: str, depth: int) -> None:
        self.in_loop += 1
        counter = f"c{self.counters}"
        self.counters += 1
        if kind == "while":
            self.line(f"{counter} = {self.draw.randint(0, 4)}")
            self.line(f"while {counter} < 7 and {self.condition(1)}:")
            self.depth += 1
            self.line(f"{counter} += 1")
            self.depth -= 1
        elif kind == "range":
            start, stop, step = self.draw.choice([(0, 4, 1), (3, -1, -1), (0, 3, 2), (1, 1, 1)])
            self.line(f"for {counter} in range({start}, {stop}, {step}):")
            self.line(f"    u = u * 0.5 + a[{counter} - {self.draw.randint(0, 1)}] + {counter}")
        else:
            self.line(f"for {counter} in range(({self.whole(1)}) % 5):")
            self.line(f"    k = (k + {counter} * b[{counter} % 3]) % 1000")
        self.block(depth)
        self.in_loop -= 1

    def number(self, depth: int) -> str:
        if depth == 0:
            return self.draw.choice((*FLOATS, "1.5", "0.1", "-2.0", "3"))
        one, other = self.number(depth - 1), self.number(depth - 1)
        forms = [f"({one} {self.draw.choice('+-*')} {other})"] * 4
        forms += [f"({one} / (abs({other}) + 1.0))", f"math.sqrt(abs({one}))", f"abs({one})", f"-{one}"]
        forms += [f"min({one}, {other})", f"max({one}, {other})", f"({one} if {self.condition(1)} else {other})"]
        forms += [f"float({self.whole(depth - 1)})", f"({one}) * {self.draw.choice(INTEGERS)}"]
        return self.draw.choice(forms)

    def whole(self, depth: int) -> str:
        if depth == 0:
            return self.draw.choice((*INTEGERS, "2", "7", "-3"))
        one, other = self.whole(depth - 1), self.whole(depth - 1)
        forms = [f"({one} {self.draw.choice('+-*&|^')} {other})"] * 4
        forms += [f"({one} % {self.draw.choice((3, 7, -5))})", f"({one} // {self.draw.choice((2, -3))})", f"~{one}"]
        forms += [f"(({one}) % 64 << 2)", f"(({one}) >> 1)", f"min({one}, {other})", f"int({self.condition(1)})"]
        return self.draw.choice(forms)

    def condition(self, depth: int) -> str:
        order = self.draw.choice(("<", "<=", ">", ">=", "==", "!="))
        if depth <= 1:
            if self.draw.random() < 0.5:
                return f"({self.draw.choice(FLOATS)} {order} {self.draw.choice((*FLOATS, '0.5'))})"
            return f"({self.whole(1)} % 4 {order} 2)"
        one, other = self.condition(depth - 1), self.condition(depth - 1)
        return self.draw.choice(
            [f"({one} {self.draw.choice(('and', 'or'))} {other})", f"not {one}", "(-1.0 < x <= y)", f"bool({one})"]
        )


def module(path: Path, source: str) -> types.ModuleType:
    """A module of this text, in a file so that its source can be read."""
    path.write_text("import math\n\nimport numpy as np\n\nimport flowcompute as fc\n\n\n" + source)
    made = types.ModuleType(path.stem)
    exec(compile(path.read_text(), str(path), "exec"), made.__dict__)
    return made
