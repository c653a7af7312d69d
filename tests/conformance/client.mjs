#!/usr/bin/env node
// The client of MCP's conformance tests: drives `agent run` against their server, whose address is the last argument.
//
// A model server in this process asks for each tool that the agent offers once, as a model would. Where the agent says that a login is
// needed, `agent mcp login` is run, and the browser's part is done here: the printed address is fetched, its redirect entered.
// AGENT_BIN: the program under test.
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAX_LOGINS = 3;
const url = process.argv.at(-1);
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const home = mkdtempSync(join(tmpdir(), "conformance-"));
const workspace = join(home, "workspace");
mkdirSync(workspace);

// The arguments that a tool requires.
function argumentsFor({ name, parameters }) {
  const planned = (context.toolCalls ?? []).find((call) => name.endsWith(`__${call.name}`));
  if (planned) return planned.arguments ?? {};
  const values = { number: 1, integer: 1, string: "test", boolean: true };
  const required = (parameters.required ?? []).map((key) => [key, values[parameters.properties?.[key]?.type] ?? null]);
  return Object.fromEntries(required);
}

let results = "";
const model = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  const { messages, tools } = JSON.parse(text);
  const answered = messages.filter((message) => message.role === "tool");
  results = JSON.stringify(answered);
  const offered = tools.map((tool) => tool.function).filter((tool) => tool.name.startsWith("mcp__"));
  const call = (tool, index) => ({
    id: `call_${index}`,
    type: "function",
    function: { name: tool.name, arguments: JSON.stringify(argumentsFor(tool)) },
  });
  const message = answered.length
    ? { role: "assistant", content: "done" }
    : { role: "assistant", content: offered.length ? null : "done", tool_calls: offered.map(call) };
  const finish_reason = message.content ? "stop" : "tool_calls";
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ choices: [{ message, finish_reason }], usage: { prompt_tokens: 1, completion_tokens: 1 } }));
});
await new Promise((ready) => model.listen(0, "127.0.0.1", ready));

const server = { url, oauth: { client_metadata_url: "https://conformance-test.local/client-metadata.json" } };
if (context.client_id) server.oauth = { client_id: context.client_id, client_secret_env: "CONFORMANCE_SECRET" };
const config = join(home, "mcp.json");
writeFileSync(config, JSON.stringify({ mcp: { servers: { test: server }, listing: "all", elicitation: "defaults" } }));

// Runs the agent; `onLine` gets each line of standard error and the process.
function agent(args, onLine = () => {}) {
  const env = { PATH: process.env.PATH, AGENT_HOME: join(home, "agent"), CONFORMANCE_SECRET: context.client_secret ?? "" };
  const child = spawn(process.env.AGENT_BIN, [...args, "--mcp-config", config, "--workspace", workspace], { env });
  let stderr = "";
  let rest = "";
  child.stdout.resume();
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    rest += chunk;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) onLine(line, child);
  });
  return new Promise((done) => child.on("close", (code) => done({ code, stderr })));
}

function login(scope) {
  const scopes = scope ? ["--scope", scope] : [];
  return agent(["mcp", "login", "test", ...scopes], async (line, child) => {
    if (!/^https?:\/\/\S+$/.test(line)) return;
    const answer = await fetch(line, { redirect: "manual" });
    child.stdin.end(`${answer.headers.get("location") ?? ""}\n`);
  });
}

const endpoint = `http://127.0.0.1:${model.address().port}/v1`;
const run = ["run", "Use each tool once.", "--model", "openai/mock", "--api-base", endpoint, "--api-key", "of-the-test", "--mode", "yolo", "--no-stream"];
let outcome;
for (let logins = 0; ; logins++) {
  results = "";
  outcome = await agent(run);
  process.stderr.write(outcome.stderr);
  const needed = /agent mcp login test(?: --scope '([^']+)')?/.exec(outcome.stderr + results);
  if (!needed || logins === MAX_LOGINS) break;
  outcome = await login(needed[1]);
  process.stderr.write(outcome.stderr);
  if (outcome.code !== 0) break;
}
model.close();
rmSync(home, { recursive: true, force: true });
process.exit(outcome.code);
