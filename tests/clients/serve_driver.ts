// Drives `agent serve` with `agent_client.ts`: serve_driver.ts WORKSPACE COMMAND...; the model writes new.txt in each run.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { AgentClient, AgentError, type Event } from "./agent_client.ts";

const [workspace, ...command] = process.argv.slice(2);
const written = `${workspace}/new.txt`;
const client = new AgentClient(command);

const { sessionId, result } = await client.run("write", { approve: () => "allow" });
assert.equal(result.status, "success");
assert.equal(readFileSync(written, "utf8"), "text\n");
console.log("start, approve: ok");

const { sessions } = await client.list();
assert.deepEqual(sessions.map((it) => [it.id, it.state]), [[sessionId, "ended"]]);
await client.undo(sessionId);
assert.ok(!existsSync(written));
console.log("list, undo: ok");

const events: Event[] = [];
assert.equal((await client.subscribe(sessionId)).is_working, false);
assert.deepEqual(await client.wait(sessionId, { approve: () => "deny", event: (event) => events.push(event) }), result);
assert.deepEqual(events.map((event) => event.seq), [...events.keys()]);
console.log("subscribe: ok");

await client.send(sessionId, "again", { max_steps: 5 });
const refused = await client.wait(sessionId, { approve: () => "deny" });
assert.equal((refused["permission_denials"] as object[]).length, 1);
assert.ok(!existsSync(written));
console.log("send, deny: ok");

const other = await client.start("write");
const unanswered = new Promise<never>(() => {});
const ended = await client.wait(other, { approve: () => client.interrupt(other).then(() => unanswered) });
assert.equal(ended.stop_reason, "user_interrupt");
console.log("interrupt: ok");

for (const [method, params, code] of [
  ["nonsense", {}, -32601],
  ["start", { task: "x", workspace: "/" }, -32602],
  ["interrupt", { session_id: sessionId }, -32600],
] as const) {
  await assert.rejects(client.request(method, params), (error) => error instanceof AgentError && error.code === code);
}
assert.equal(await client.close(), 0);
console.log("errors, end: ok");
