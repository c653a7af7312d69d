#!/usr/bin/env python3
"""Writes link/order.ld: the functions that a run and a waiting worker use, so that the linker puts them together (see build.rs).

    CARGO_PROFILE_DIST_STRIP=none cargo build --profile dist
    valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=run.out target/dist/agent run ...
    valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=worker.out target/dist/agent worker ...
    link/order.py target/dist/agent run.out worker.out

It adds to the patterns that are there: valgrind reads the symbols of the section .text only, and what the patterns match is in another
one. After a change of many functions, begin with no patterns.

Names are patterns without the hashes of a symbol, which change with every compiler. A pattern is shortened to the path of a module
or a type where little else lies below it. One without a match has no effect.
"""

import bisect
import pathlib
import re
import subprocess
import sys

# Bytes of unused code for which one pattern less is worth it.
PATTERN_WEIGHT = 1000

# What the processes use that start commands, which the profile of a run leaves out.
LAUNCHER = "_ZN5agent7process"


def symbols(program):
    """Address, size and mangled name of each function, by address."""
    lines = subprocess.run(["nm", "-S", "-n", program], capture_output=True, text=True, check=True).stdout.splitlines()
    fields = (line.split(" ", 3) for line in lines)
    return [(int(f[0], 16), int(f[1], 16), f[3]) for f in fields if len(f) == 4 and f[1] and f[2] in "tTwW"]


def executed(profile, program):
    """Addresses of the executed instructions (https://valgrind.org/docs/manual/cl-format.html)."""
    objects, current, address, found = {}, "", 0, set()
    for line in pathlib.Path(profile).read_text().splitlines():
        if named := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line):
            caller, number, name = named.groups()
            if name:
                objects[number] = name
            if not caller:
                current = objects[number]
        elif position := re.match(r"(?:0x([0-9a-f]+)|([+-]\d+)|\*) ", line):
            absolute, relative = position.groups()
            address = int(absolute, 16) if absolute else address + int(relative or 0)
            if current.endswith(program):
                found.add(address)
    return found


def path(name):
    """The parts of a mangled path (the legacy scheme of rustc) without its hash; a name of C is one part."""
    if not name.startswith("_ZN"):
        return [re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)]
    parts, rest = [], name[3:]
    while (length := re.match(r"\d+", rest)) and not re.match(r"17h[0-9a-f]{16}E", rest):
        end = length.end() + int(length.group())
        parts.append(rest[:end])
        rest = rest[end:]
    return parts


class Node:
    """What lies below a path."""

    def __init__(self):
        self.children, self.size, self.own, self.used = {}, 0, 0, False

    def add(self, parts, size, used):
        self.size += size
        self.used |= used
        if parts:
            self.children.setdefault(parts[0], Node()).add(parts[1:], size, used)
        else:
            self.own += size

    def patterns(self, prefix):
        """The cheapest patterns for all that is used here: their cost, and the patterns."""
        if not self.used:
            return 0, []
        cost, found = self.own, []
        if self.own:
            cost, found = self.own + PATTERN_WEIGHT, [prefix + "17h*" if prefix.startswith("_ZN") else prefix]
        for name, child in sorted(self.children.items()):
            below, patterns = child.patterns(prefix + name)
            cost, found = cost + below, found + patterns
        whole = self.size + PATTERN_WEIGHT
        return (whole, [prefix + "*"]) if self.children and whole < cost else (cost, found)


def main(program, *profiles):
    functions = symbols(program)
    starts = [start for start, _, _ in functions]
    addresses = set().union(*(executed(profile, pathlib.Path(program).name) for profile in profiles))
    # Merged functions have the same address.
    used = {starts[bisect.bisect_right(starts, address) - 1] for address in addresses}
    root = Node()
    for start, size, name in functions:
        is_used = start in used or name.startswith(LAUNCHER)
        root.add((["_ZN"] if name.startswith("_ZN") else []) + path(name), size, is_used)
    found = [p for name, child in sorted(root.children.items()) for p in child.patterns(name)[1]]
    file = pathlib.Path(__file__).with_name("order.ld")
    known = re.findall(r"\*\(\.text\.(.*)\)", file.read_text())
    # What is marked cold has sections of another name, and little of it runs.
    patterns = [*dict.fromkeys(pattern for pattern in [*known, *found] if pattern != "unlikely.*"), "unlikely.*"]
    lines = "\n".join(f"    *(.text.{pattern})" for pattern in patterns)
    script = f"/* Written by link/order.py. */\nSECTIONS {{\n  .text.used : {{\n{lines}\n  }}\n}} INSERT BEFORE .text;\n"
    file.write_text(script)


main(*sys.argv[1:])
