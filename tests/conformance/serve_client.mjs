#!/usr/bin/env node
// MCP's official TypeScript client against `agent mcp serve`: runs a task, answers a question, cancels a run, leaves.
// AGENT_BIN: the program under test; the arguments: a workspace and a directory for scripts of models.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [workspace, scripts] = process.argv.slice(2);
const call = (name, args) => ({ calls: [{ name, arguments: args }] });

async function connect(name, turns, answer) {
  const script = join(scripts, `${name}.json`);
  writeFileSync(script, JSON.stringify({ turns }));
  const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, (request) => answer(request.params));
  const args = ["mcp", "serve", "-w", workspace, "--model", `scripted:${script}`];
  await client.connect(new StdioClientTransport({ command: process.env.AGENT_BIN, args, env: process.env }));
  return client;
}

const refuse = () => assert.fail("a question that was not expected");

let client = await connect("run", [{ text: "first" }, { text: "second" }], refuse);
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["run", "reply", "session"]);
const first = await client.callTool({ name: "run", arguments: { task: "say it" } });
assert.equal(first.content[0].text, "first");
const { session_id } = first.structuredContent;
const second = await client.callTool({ name: "session", arguments: { session_id } });
assert.equal(second.structuredContent.session_id, session_id);
await client.ping();
await client.close();
console.log("a run, its session, ping");

const asked = [];
client = await connect("ask", [call("write_file", { path: "asked.txt", content: "x" }), { text: "done" }], (params) => {
  asked.push(params.message);
  return { action: "accept", content: { decision: "allow" } };
});
const allowed = await client.callTool({ name: "run", arguments: { task: "write" } });
assert.notEqual(allowed.isError, true);
assert.match(asked[0], /write_file asked\.txt/);
assert.ok(existsSync(join(workspace, "asked.txt")));
await client.close();
console.log("a question, answered");

client = await connect("cancel", [call("run_command", { command: "sleep 300" }), { text: "done" }], () => ({
  action: "accept",
  content: { decision: "allow" },
}));
const abort = new AbortController();
const progress = new Promise((begun) => {
  const cut = client.callTool({ name: "run", arguments: { task: "wait" } }, undefined, { signal: abort.signal, onprogress: begun });
  cut.then(() => assert.fail("a cancelled call has an answer"), () => {});
});
await progress;
abort.abort();
await client.ping();
await client.close();
console.log("a run, cancelled");
