"""Lets aider and opencode change a file as executors of tasks, against a model that is a script: `tests/executors.sh`."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

AGENT = sys.argv[1]
# aider writes the files of such an answer.
WHOLE_FILE = "hello.txt\n```\nhello from the executor\n```\n"


def tool_call(name, arguments):
    call = {"index": 0, "id": "call_1", "type": "function"}
    return {"tool_calls": [call | {"function": {"name": name, "arguments": json.dumps(arguments)}}]}


def answer(request):
    """The next message: for aider a file, for opencode a call of its tool `write`, and then a text."""
    tools = {tool["function"]["name"] for tool in request.get("tools", [])}
    last = request["messages"][-1]["role"]
    if "write" not in tools:
        return {"content": WHOLE_FILE}, "stop"
    if last == "tool":
        return {"content": "The file is written."}, "stop"
    text = json.dumps(request["messages"])
    directory = text.split("Working directory: ")[1].split("\\n")[0]
    path = f"{directory}/hello.txt"
    return tool_call("write", {"filePath": path, "content": "hello from the executor\n"}), "tool_calls"


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message, reason = answer(request)
        usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
        head = {"id": "1", "created": 1, "model": request["model"]}
        if request.get("stream"):
            chunks = [
                {"choices": [{"index": 0, "delta": {"role": "assistant"} | message, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
                {"choices": [], "usage": usage},
            ]
            object_name = {"object": "chat.completion.chunk"}
            lines = [f"data: {json.dumps(head | object_name | chunk)}\n\n" for chunk in chunks]
            body, kind = "".join(lines) + "data: [DONE]\n\n", "text/event-stream"
        else:
            message = {"role": "assistant"} | message
            choice = {"index": 0, "message": message, "finish_reason": reason}
            body = json.dumps(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
            kind = "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def check(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def main():
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{model.server_port}"
    with tempfile.TemporaryDirectory(dir=".") as place:
        place = Path(place).resolve()
        workspace = place / "workspace"
        workspace.mkdir()
        provider = {"npm": "@ai-sdk/openai-compatible", "models": {"mock": {}}}
        provider["options"] = {"baseURL": f"http://{host}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
        (workspace / "opencode.json").write_text(json.dumps({"provider": {"scripted": provider}}))
        commit = ["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "first"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], commit):
            subprocess.run(["git", *words], cwd=workspace, check=True)
        home = place / "home"
        home.mkdir()
        key = {"from": "OPENAI_API_KEY"}
        aider = {"OPENAI_API_KEY": key, "OPENAI_API_BASE": {"value": f"http://{host}/v1"}}
        executors = {
            "aider": {"env": aider, "network": True},
            "opencode": {"network": True},
        }
        (home / "config.yaml").write_text(json.dumps({"fleet": {"executors": executors}}))
        env = os.environ | {"AGENT_HOME": str(home), "OPENAI_API_KEY": "sk-0123456789abcdef"}

        def agent(*words):
            done = subprocess.run([AGENT, *words], cwd=workspace, env=env, capture_output=True, text=True)
            check(done.returncode == 0, f"{words} succeeds: {done.stdout}{done.stderr}")
            return done.stdout

        for name, model_name in (("aider", "openai/mock"), ("opencode", "scripted/mock")):
            task = ["--executor", name, "--model", model_name, "--id", name]
            agent("submit", "write hello.txt", "--check", "test -s hello.txt", *task)
            agent("worker", "--once", "--mode", "yolo")
            record = json.loads(agent("tasks", "show", name, "--json"))["tasks"][0]
            check(record["state"] == "done", f"{name} is done: {record}")
            written = subprocess.run(
                ["git", "show", f"agent/task/{name}:hello.txt"], cwd=workspace, capture_output=True, text=True
            )
            check("hello from the executor" in written.stdout, f"{name} has written the file: {written}")
            files = [file["path"] for file in record["result"]["files_modified"]]
            check("hello.txt" in files, f"{name} has changed {files}")
            print(f"{name}: {record['result']['executor']}, {files}")


main()
