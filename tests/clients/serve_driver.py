"""Drives `agent serve` with `agent_client.py`: serve_driver.py WORKSPACE COMMAND...; the model writes new.txt in each run."""

import pathlib
import sys

from agent_client import AgentClient, AgentError

workspace, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
written = workspace / "new.txt"
client = AgentClient(command)

session, result = client.run("write", lambda question: "allow")
assert (result["status"], written.read_text()) == ("success", "text\n"), result
print("start, approve: ok")

assert [(it["id"], it["state"]) for it in client.sessions()] == [(session, "ended")]
client.undo(session)
assert not written.exists()
print("list, undo: ok")

events = []
assert client.subscribe(session)["is_working"] is False
assert client.wait(session, lambda question: "deny", events.append) == result
assert [event["seq"] for event in events] == list(range(len(events)))
print("subscribe: ok")

client.send(session, "again", limits={"max_steps": 5})
assert client.wait(session, lambda question: "deny")["permission_denials"], "the call was refused"
assert not written.exists()
print("send, deny: ok")

session = client.start("write")
question = next(it for it in client.notifications() if it["method"] == "approval")
assert question["params"]["session_id"] == session
client.interrupt(session)
assert client.wait(session, lambda question: "deny")["stop_reason"] == "user_interrupt"
print("interrupt: ok")

for method, params, code in [("nonsense", {}, -32601), ("start", {"task": "x", "workspace": "/"}, -32602), ("interrupt", {"session_id": session}, -32600)]:
    try:
        client.request(method, **params)
    except AgentError as error:
        assert error.code == code, error
    else:
        raise AssertionError(f"{method} was not refused")
assert client.close() == 0
print("errors, end: ok")
