"""Measures the queue: `python3 tests/queue_bench.py PROGRAM [NATS-SERVER]`, best with a program of the profile `dist` on a quiet machine.

Per engine: the time to submit 1,000 tasks; the time from the start of `agent worker --once` to its request, beside that of `agent run`; tasks per
second of four workers beside one, at 200 ms an answer; memory and CPU of a worker that waits beside 1,000 ended tasks.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

AGENT = str(Path(sys.argv[1]).resolve())
NATS = sys.argv[2] if len(sys.argv) > 2 else None
REPETITIONS = 9
TASKS = 40
IDLE_SECONDS = 60
CHUNK = {"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]}
BODY = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    arrived = []
    delay = 0.0

    def do_POST(self):
        Model.arrived.append(time.perf_counter())
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(Model.delay)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


class Place:
    """A repository and a home with a queue."""

    def __init__(self, directory, queue):
        model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        self.workspace, self.file = directory / "workspace", directory / "tasks.jsonl"
        self.workspace.mkdir()
        (self.workspace / "a.txt").write_text("first\n")
        commit = ["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "first"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], commit):
            subprocess.run(["git", *words], cwd=self.workspace, check=True)
        self.env = os.environ | {"AGENT_HOME": str(directory / "home")}
        (directory / "home").mkdir()
        (directory / "home" / "config.yaml").write_text(json.dumps({"fleet": {"queue": queue}}))
        url = f"http://127.0.0.1:{model.server_port}/v1"
        self.model = ["--model", "openai/mock", "--api-base", url, "--api-key", "k123456"]

    def start(self, *words):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([AGENT, *words], cwd=self.workspace, env=self.env, **quiet)

    def run(self, *words):
        if self.start(*words).wait() != 0:
            sys.exit(f"{words} fails")

    def submit(self, count, name):
        lines = [json.dumps({"id": f"{name}-{number}", "prompt": "x"}) + "\n" for number in range(count)]
        self.file.write_text("".join(lines))
        began = time.perf_counter()
        self.run("submit", "-f", str(self.file))
        return time.perf_counter() - began

    def until_request(self, *words):
        Model.arrived.clear()
        began = time.perf_counter()
        self.run(*words, *self.model)
        return Model.arrived[0] - began

    def drain(self, workers):
        words = ["worker", "--drain", "--mode", "yolo", *self.model]
        began = time.perf_counter()
        for worker in [self.start(*words) for _ in range(workers)]:
            worker.wait()
        return time.perf_counter() - began


def idle(place):
    worker = place.start("worker", "--mode", "yolo", *place.model)
    time.sleep(5)

    def seconds():
        fields = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    time.sleep(IDLE_SECONDS)
    status = Path(f"/proc/{worker.pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
    share = (seconds() - before) / IDLE_SECONDS
    worker.terminate()
    worker.wait()
    return memory, share


def measure(engine, queue):
    with tempfile.TemporaryDirectory() as directory:
        place = Place(Path(directory), queue)
        ids = [f"first-{number}" for number in range(1000)]
        print(f"{engine}: submit 1,000 tasks: {place.submit(1000, 'first'):.3f} s")
        place.run("tasks", "cancel", *ids)
        runs, workers = [], []
        for number in range(REPETITIONS):
            runs.append(place.until_request("run", "x"))
            place.submit(1, f"one-{number}")
            workers.append(place.until_request("worker", "--once", "--mode", "yolo"))
        run, worker = (1000 * statistics.median(times) for times in (runs, workers))
        print(f"{engine}: start to request: run {run:.1f} ms, worker --once {worker:.1f} ms, {worker - run:.1f} more")
        Model.delay = 0.2
        place.submit(TASKS, "alone")
        alone = place.drain(1)
        place.submit(4 * TASKS, "four")
        four = place.drain(4)
        Model.delay = 0.0
        print(f"{engine}: four workers do {4 * alone / four:.2f} times the tasks of one ({TASKS / alone:.2f} a second)")
        memory, share = idle(place)
        print(f"{engine}: a worker that waits has {memory:.1f} MiB and uses {100 * share:.2f} % of a core")


def main():
    measure("SQLite", None)
    if NATS:
        with tempfile.TemporaryDirectory() as directory:
            ports = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", directory]
            server = subprocess.Popen([NATS, "-js", "-sd", f"{directory}/data", *ports], stderr=subprocess.DEVNULL)
            while not (found := list(Path(directory).glob("*.ports"))) or not found[0].read_text().strip():
                time.sleep(0.05)
            url = json.loads(found[0].read_text())["nats"][0]
            try:
                measure("NATS", url)
            finally:
                server.terminate()
                server.wait()


main()
