#!/usr/bin/env bash
# Drives `agent acp` with the official client of the Agent Client Protocol, and checks every message of the agent against the schema
# of version 1: `tests/acp.sh`. Packages and Node are downloaded from npm and PyPI into target/acp, so the gate does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/node.sh
. tests/node.sh
use_node acp @agentclientprotocol/sdk@2.4.0 ajv@8.20.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AGENT_HOME=$work/home
mkdir "$work/home" "$work/project"
# A known window lets the agent report how full it is.
printf 'llm: {context_window: 100000}\n' >"$work/home/config.yaml"
printf 'old\n' >"$work/project/a.txt"
cat >"$work/script.yaml" <<'SCRIPT'
turns:
  - thinking: I shall write.
    calls:
      - {name: read_file, arguments: {path: a.txt}}
  - calls:
      - {name: write_file, arguments: {path: a.txt, content: "new\n"}}
  - text: written
SCRIPT
cat >"$work/refused.yaml" <<'SCRIPT'
turns:
  - calls:
      - {name: write_file, arguments: {path: b.txt, content: "b\n"}}
  - text: refused
SCRIPT
cat >"$work/slow.yaml" <<'SCRIPT'
turns:
  - calls:
      - {name: run_command, arguments: {command: sleep 60}}
  - text: never
SCRIPT
cat >drive.mjs <<'DRIVE'
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import Ajv from "ajv/dist/2020.js";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const [program, work] = process.argv.slice(2);
const cwd = `${work}/project`;
const schema = JSON.parse(readFileSync(new URL("./node_modules/@agentclientprotocol/sdk/schema/v1/schema.json", import.meta.url)));
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(schema, "acp");
const definition = (side, method, suffix) =>
  Object.keys(schema.$defs).find((name) => {
    const found = schema.$defs[name];
    return found["x-side"] === side && found["x-method"] === method && name.endsWith(suffix);
  });
let checked = 0;
function fits(name, value, message) {
  assert.ok(name, `no definition for ${message}`);
  const validate = ajv.getSchema(`acp#/$defs/${name}`);
  assert.ok(validate(value), `${name}: ${JSON.stringify(validate.errors)}\n${message}`);
  checked += 1;
}

/** Starts the agent, performs the handshake, and calls `work` with the context; `answers` are the options for permissions. */
async function session(model, more, answers, work) {
  const child = spawn(program, ["acp", "--model", `scripted:${model}`, ...more], { stdio: ["pipe", "pipe", "inherit"] });
  const sent = new Map();
  const watch = (stream, handle) => {
    let rest = "";
    return new TransformStream({
      transform(bytes, controller) {
        const lines = (rest + Buffer.from(bytes).toString()).split("\n");
        rest = lines.pop();
        lines.filter((line) => line).forEach((line) => handle(JSON.parse(line), line));
        controller.enqueue(bytes);
      },
    });
  };
  const fromAgent = watch(child.stdout, (message, line) => {
    if (message.method && "id" in message) fits(definition("client", message.method, "Request"), message.params, line);
    else if (message.method) fits(definition("client", message.method, "Notification"), message.params, line);
    else if (message.error) fits("Error", message.error, line);
    else fits(definition("agent", sent.get(message.id), "Response"), message.result, line);
  });
  const toAgent = watch(child.stdin, (message) => message.method && sent.set(message.id, message.method));
  toAgent.readable.pipeTo(Writable.toWeb(child.stdin)).catch(() => {});
  const updates = [];
  const texts = (kind) => updates.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text).join("");
  const asked = [];
  const app = client({ name: "acp.sh" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      return { outcome: { outcome: "selected", optionId: params.options.find((it) => it.kind === answers).optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => ({ content: readFileSync(params.path, "utf8") }));
  const stream = ndJsonStream(toAgent.writable, Readable.toWeb(child.stdout).pipeThrough(fromAgent));
  const result = await app.connectWith(stream, async (context) => {
    const capabilities = { fs: { readTextFile: true, writeTextFile: false } };
    const about = await context.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: capabilities });
    assert.equal(about.protocolVersion, 1);
    return work({ context, updates, texts, asked });
  });
  child.stdin.end();
  const code = await new Promise((resolve) => (child.exitCode === null ? child.on("exit", resolve) : resolve(child.exitCode)));
  assert.equal(code, 0, "exit code");
  return result;
}

const prompt = (context, sessionId, text) =>
  context.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const open = async (context) => (await context.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;

const id = await session(`${work}/script.yaml`, [], "allow_once", async ({ context, updates, texts, asked }) => {
  const sessionId = await open(context);
  assert.equal((await prompt(context, sessionId, "write")).stopReason, "end_turn");
  assert.equal(texts("agent_message_chunk"), "written");
  assert.equal(asked.length, 1);
  assert.equal(readFileSync(`${cwd}/a.txt`, "utf8"), "new\n");
  assert.ok(updates.some((it) => it.content?.[0]?.type === "diff" && it.content[0].oldText === "old\n"));
  assert.ok(updates.some((it) => it.sessionUpdate === "usage_update" && it.size === 100000), "usage_update");
  assert.ok(texts("agent_thought_chunk").includes("I shall write."), "agent_thought_chunk");
  console.log("prompt, permission, diff, thought, usage: ok");
  return sessionId;
});
await session(`${work}/refused.yaml`, [], "reject_once", async ({ context, asked }) => {
  const sessionId = await open(context);
  assert.equal((await prompt(context, sessionId, "write")).stopReason, "end_turn");
  assert.equal(asked.length, 1);
  assert.ok(!existsSync(`${cwd}/b.txt`));
  console.log("refusal: ok");
});
await session(`${work}/slow.yaml`, ["--mode", "yolo"], "allow_once", async ({ context, updates }) => {
  const sessionId = await open(context);
  const running = prompt(context, sessionId, "sleep");
  while (!updates.some((it) => it.sessionUpdate === "tool_call")) await new Promise(setImmediate);
  await context.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await running).stopReason, "cancelled");
  console.log("cancel: ok");
});
await session(`${work}/refused.yaml`, [], "reject_once", async ({ context, updates, texts }) => {
  const place = { sessionId: id, cwd, mcpServers: [] };
  await context.request(methods.agent.session.load, place);
  assert.equal(texts("user_message_chunk"), "write");
  assert.equal(texts("agent_message_chunk"), "written");
  assert.ok(updates.some((it) => it.sessionUpdate === "tool_call"));
  console.log("load: ok");
  const listed = await context.request(methods.agent.session.list, { cwd });
  assert.ok(listed.sessions.some((it) => it.sessionId === id));
  await context.request(methods.agent.session.setMode, { sessionId: id, modeId: "confirm-all" });
  await context.request(methods.agent.session.setConfigOption, { sessionId: id, configId: "mode", value: "confirm-sensitive" });
  await context.request(methods.agent.session.close, { sessionId: id });
  await context.request(methods.agent.session.resume, place);
  await assert.rejects(context.request(methods.agent.session.prompt, { sessionId: "none", prompt: [] }));
  await assert.rejects(context.request("nonsense", {}));
  console.log("list, set_mode, set_config_option, close, resume, errors: ok");
});
console.log(`${checked} messages of the agent fit the schema`);
DRIVE
node drive.mjs "$AGENT_BIN" "$work"
