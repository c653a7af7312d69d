"""A small client of `agent serve`: JSON-RPC 2.0, one message a line, with the standard library alone.

    with AgentClient(["agent", "serve", "--mode", "confirm-sensitive"]) as client:
        session, result = client.run("Fix the tests", approve=lambda question: "deny")
        print(result["status"], result["output"])
"""

from __future__ import annotations

import json
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

Json = dict[str, Any]


class AgentError(Exception):
    """The error of a response."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['message']} ({error['code']})")
        self.code: int = error["code"]
        self.data: Any = error.get("data")


class AgentClient:
    """Starts the server and speaks with it, one request at a time; closing it interrupts all runs."""

    def __init__(self, command: Sequence[str] = ("agent", "serve")) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        self._last_id = 0
        self._waiting: deque[Json] = deque()

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> int:
        """Ends the server and returns its exit code."""
        self._input.close()
        for _ in self._output:  # It may wait for room to write what it sends last.
            pass
        return self._process.wait()

    def request(self, method: str, **params: Any) -> Json:
        """Returns the result; notifications that arrive before it are kept for `notifications`."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._input.write(json.dumps(message) + "\n")
        self._input.flush()
        while True:
            answer = self._receive()
            if "method" in answer:
                self._waiting.append(answer)
            elif "error" in answer:
                raise AgentError(answer["error"])
            else:
                return answer["result"]

    def notifications(self) -> Iterator[Json]:
        """Yields `event`, `approval` and `finished` as they arrive, as objects with `method` and `params`."""
        while True:
            yield self._waiting.popleft() if self._waiting else self._receive()

    def start(self, task: str, **options: Any) -> str:
        """Begins a session (options: `agent`, `model`, `limits`) and returns its id."""
        return self.request("start", task=task, **options)["session_id"]

    def send(self, session_id: str, prompt: str, **options: Any) -> None:
        """Continues a session (options: `limits`)."""
        self.request("send", session_id=session_id, prompt=prompt, **options)

    def interrupt(self, session_id: str) -> None:
        """Interrupts the run of a session."""
        self.request("interrupt", session_id=session_id)

    def approve(self, session_id: str, question_id: str, decision: str, reason: str | None = None) -> None:
        """Answers a question: `allow`, `allow_always`, `deny` or `stop`."""
        self.request("approve", session_id=session_id, question_id=question_id, decision=decision, reason=reason)

    def sessions(self) -> Iterator[Json]:
        """Yields the sessions of the workspace, newest first."""
        cursor = None
        while True:
            page = self.request("list", cursor=cursor)
            yield from page["sessions"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def subscribe(self, session_id: str, from_seq: int = 0) -> Json:
        """Has the stored events sent again, as notifications."""
        return self.request("subscribe", session_id=session_id, from_seq=from_seq)

    def undo(self, session_id: str, **options: Any) -> Json:
        """Undoes file changes (options: `to_step`, `file`, `force`)."""
        return self.request("undo", session_id=session_id, **options)

    def wait(self, session_id: str, approve: Callable[[Json], str], event: Callable[[Json], None] = lambda _: None) -> Json:
        """Waits for the end of the run of a session and returns its result; `approve` decides on its questions."""
        for notification in self.notifications():
            params = notification["params"]
            if params["session_id"] != session_id:
                continue
            if notification["method"] == "event":
                event(params["event"])
            elif notification["method"] == "approval":
                self.approve(session_id, params["question"]["id"], approve(params["question"]))
            elif notification["method"] == "finished":
                return params["result"]
        raise AssertionError("notifications do not end")

    def run(self, task: str, approve: Callable[[Json], str], **options: Any) -> tuple[str, Json]:
        """Runs a task in a new session; returns the session's id and the result."""
        session_id = self.start(task, **options)
        return session_id, self.wait(session_id, approve)

    def _receive(self) -> Json:
        line = self._output.readline()
        if not line.endswith("\n"):
            raise EOFError("the server has ended")
        return json.loads(line)
