#!/usr/bin/env python3
"""Renews config/layout.ld: which functions an ordinary run uses, so that the linker places them beside one another.

    cargo rustc --release --bin agent -- -C link-arg=-Wl,-Map=/tmp/agent.map
    python3 config/refresh-layout.py target/release/agent /tmp/agent.map

The kernel maps 64 KB of a program around each page that is touched. Functions that are used lie all over 19 MB of
machine code, so most of it would be mapped, page fault by page fault, in the agent and in the short-lived processes
around each command. Run on Linux x86-64 as root or as a user, when the compiler or the code has changed: a name that is
no longer there does no harm and brings nothing.

A breakpoint on each function shows which are entered while runs against a scripted model read, search, edit and run
commands, in the agent and in the processes it forks. First come those of the forked ones, which begin anew with each
command.
"""

import contextlib
import ctypes
import http.server
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading

LAYOUT = pathlib.Path(__file__).with_name("layout.ld")
TURNS = [
    ("read_file", {"path": "main.py"}),
    ("search_code", {"pattern": "Hello"}),
    ("edit_file", {"path": "main.py", "old_str": "Hello", "new_str": "Goodbye"}),
    ("run_command", {"command": "python3 main.py"}),
    ("run_command", {"command": "cat main.py | head -n 1; yes | head -c 2000000"}),
    ("list_files", {"path": "."}),
    None,
]
# ptrace(2) and asm/ptrace-abi.h.
TRACEME, PEEKTEXT, POKETEXT, CONT, GETREGS, SETREGS, DETACH = 0, 1, 4, 7, 12, 13, 17
SETOPTIONS, GETEVENTMSG = 0x4200, 0x4201
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # fork, vfork, clone, exec, end with the tracer
EVENT_EXEC, RIP = 4, 16 * 8
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for the calls of TURNS, one after another, and then answers, as Chat Completions streams it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = TURNS[sum(message["role"] == "tool" for message in body["messages"])]
        if turn:
            function = {"name": turn[0], "arguments": json.dumps(turn[1])}
            call = {"index": 0, "id": f"c{len(body['messages'])}", "type": "function", "function": function}
            delta, end = {"tool_calls": [call]}, "tool_calls"
        else:
            delta, end = {"content": "All done."}, "stop"
        chunks = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}},
        ]
        same = {"id": "x", "object": "chat.completion.chunk", "model": "m"}
        text = "".join(f"data: {json.dumps(same | chunk)}\n\n" for chunk in chunks)
        text = (text + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def functions(link_map):
    """Address -> name and size of each section of code that holds one function, from the map that lld writes."""
    found = {}
    for line in pathlib.Path(link_map).read_text().splitlines():
        section = re.fullmatch(r" *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ +\S.*:\((\.text\.\S+)\)", line)
        if section and int(section[2], 16):
            found[int(section[1], 16)] = (section[3], int(section[2], 16))
    return found


def base_of(pid, binary):
    """Where the binary's first segment lies in the process, None if that runs another program."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(str(binary)):
            return int(line.split("-")[0], 16)
    return None


def ptrace(request, pid, address=0, data=0):
    result = libc.ptrace(request, pid, address, data)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Tracer:
    """Runs the binary with a breakpoint on each function, in itself and in what it forks."""

    def __init__(self, binary, at):
        self.binary, self.at = binary, at
        self.base, self.generation, self.bytes = {}, {}, {}
        self.early = set()  # that stopped before the one that made them told of it
        self.entered = {}  # address -> how many forks stand between the agent and who entered it

    def run(self, argv, env, cwd):
        pid = os.fork()
        if pid == 0:
            os.chdir(cwd)
            libc.ptrace(TRACEME, 0, None, None)
            os.execve(argv[0], argv, env)
        self.generation[pid] = 0
        os.waitpid(pid, 0)
        ptrace(SETOPTIONS, pid, 0, OPTIONS)
        self.executed(pid)
        while True:
            try:
                pid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):
                with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
                    self.stopped(pid, status)

    def stopped(self, pid, status):
        event, number, deliver = status >> 16, os.WSTOPSIG(status), 0
        if pid not in self.base:
            self.early.add(pid)
            return
        if event == EVENT_EXEC:
            self.executed(pid)
            return
        if event:
            self.made(pid)
        elif number == signal.SIGTRAP:
            self.hit(pid)
        elif number != signal.SIGSTOP:
            deliver = number
        ptrace(CONT, pid, 0, deliver)

    def executed(self, pid):
        self.base[pid] = base_of(pid, self.binary)
        if self.base[pid] is None:
            ptrace(DETACH, pid)
            return
        self.arm(pid)
        ptrace(CONT, pid)

    def made(self, pid):
        message = ctypes.c_ulong()
        ptrace(GETEVENTMSG, pid, 0, ctypes.addressof(message))
        child = message.value
        thread = os.path.exists(f"/proc/{pid}/task/{child}")
        self.base[child] = self.base[pid]
        self.generation[child] = self.generation[pid] + (not thread)
        if child in self.early:
            self.early.remove(child)
            ptrace(CONT, child)

    def arm(self, pid):
        base = self.base[pid]
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            first, last = min(self.at), max(self.at)
            memory.seek(base + first)
            code = bytearray(memory.read(last - first + 1))
            for address in self.at:
                self.bytes[address] = code[address - first]
                code[address - first] = 0xCC
            memory.seek(base + first)
            memory.write(code)

    def hit(self, pid):
        registers = (ctypes.c_ubyte * 216)()
        ptrace(GETREGS, pid, 0, ctypes.addressof(registers))
        rip = struct.unpack_from("Q", registers, RIP)[0] - 1
        address = rip - self.base[pid]
        if address not in self.bytes:
            return
        self.entered[address] = max(self.entered.get(address, 0), self.generation[pid])
        ctypes.set_errno(0)
        word = ptrace(PEEKTEXT, pid, rip) & 0xFFFFFFFFFFFFFFFF
        ptrace(POKETEXT, pid, rip, (word & ~0xFF) | self.bytes[address])
        struct.pack_into("Q", registers, RIP, rip)
        ptrace(SETREGS, pid, 0, ctypes.addressof(registers))


def pattern(name):
    """The section's name without the numbers that stand for a crate's version and a module's content, cut short."""
    name = re.sub(r"\.llvm\.\d+$", ".llvm.*", name)
    name = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)
    return name if len(name) <= 150 else name[:149] + "*"


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    at = functions(sys.argv[2])
    tracer = Tracer(binary, at)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch, "work")
        work.mkdir()
        (work / "main.py").write_text('print("Hello")\n')
        subprocess.run(["git", "init", "-q", work], check=True)
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": scratch, "OPENAI_API_KEY": "none", "LANG": "C.UTF-8"}
        model = ["--model", "openai/m", "--api-base", f"http://127.0.0.1:{server.server_port}/v1"]
        tracer.run([str(binary), "run", "Greet.", "--mode", "yolo", *model], env, work)
    groups = {True: set(), False: set()}
    for address, generation in tracer.entered.items():
        groups[generation >= 1].add(pattern(at[address][0]))
    groups[False] -= groups[True]
    size, whole = sum(at[address][1] for address in tracer.entered), sum(size for _, size in at.values())
    print(f"{len(tracer.entered)} of {len(at)} functions, {size / 1e6:.1f} of {whole / 1e6:.1f} MB")
    lines = ["/* Made by config/refresh-layout.py, which says what for. */", "SECTIONS", "{", "  .text.run :", "  {"]
    for forked in (True, False):
        lines.append("    *(")
        lines += [f"      {name}" for name in sorted(groups[forked])]
        lines.append("    )")
    lines += ["  }", "}", "INSERT BEFORE .text;", ""]
    LAYOUT.write_text("\n".join(lines))


main()
