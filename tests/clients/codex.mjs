// Drives the program with `@openai/codex-sdk`: two turns, resume, output schema, image, abort, a failed run, a step limit. `tests/codex.sh` runs it.
import assert from "node:assert/strict";
import { mkdtempSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Codex } from "@openai/codex-sdk";

const root = mkdtempSync(join(tmpdir(), "agent-codex-"));
const workspace = mkdtempSync(join(root, "workspace-"));
const requests = [];
let turns = [];

/** A model server in the format of OpenAI's Responses; it answers request after request with `turns`. */
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    requests.push({ path: request.url, key: request.headers.authorization, body: JSON.parse(body) });
    const turn = turns.shift();
    if (turn === undefined) return; // never answers
    if (turn.status) return response.writeHead(turn.status).end("{}");
    const output = turn.call
      ? [{ type: "function_call", call_id: `c${requests.length}`, name: turn.call[0], arguments: JSON.stringify(turn.call[1]) }]
      : [{ type: "message", role: "assistant", content: [{ type: "output_text", text: turn.text }] }];
    const usage = { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 3, output_tokens_details: { reasoning_tokens: 1 } };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "r", object: "response", status: "completed", model: "mock", output, usage }));
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const codex = new Codex({
  codexPathOverride: process.env.AGENT_BIN,
  baseUrl: `http://127.0.0.1:${server.address().port}/v1`,
  apiKey: "sk-test-0123456789abcdef",
  env: { PATH: process.env.PATH, HOME: root, AGENT_HOME: join(root, "home") },
  config: { tools: { view_image: true } },
});
const options = {
  model: "mock",
  sandboxMode: "workspace-write",
  workingDirectory: workspace,
  skipGitRepoCheck: true,
  modelReasoningEffort: "high",
  approvalPolicy: "never",
  networkAccessEnabled: false,
  webSearchMode: "disabled",
};

const tests = {
  async "two turns"() {
    turns = [{ call: ["write_file", { path: "new.txt", content: "x" }] }, { call: ["run_command", { command: "echo hi" }] }, { text: "first" }, { text: "second" }];
    const thread = codex.startThread(options);
    const one = await thread.run("write it");
    assert.equal(one.finalResponse, "first");
    const [errors, calls] = [true, false].map((wanted) => one.items.filter((item) => (item.type === "error") === wanted));
    assert.match(errors[0].message, /unknown configuration key `tools.view_image`/);
    assert.deepEqual(calls.map((item) => item.type), ["file_change", "command_execution", "agent_message"]);
    assert.deepEqual(one.usage, { input_tokens: 30, cached_input_tokens: 12, cache_write_input_tokens: 0, output_tokens: 9, reasoning_output_tokens: 3 });
    assert.ok(existsSync(join(workspace, "new.txt")));
    const two = await thread.run("and then");
    assert.equal(two.finalResponse, "second");
    assert.match(JSON.stringify(requests.at(-1).body), /write it.*first.*and then/);
    assert.equal(requests.at(-1).key, "Bearer sk-test-0123456789abcdef");
    assert.equal(requests.at(-1).path, "/v1/responses");
  },
  async resume() {
    turns = [{ text: "known" }, { text: "again" }];
    const thread = codex.startThread(options);
    await thread.run("remember 17");
    const resumed = codex.resumeThread(thread.id, options);
    assert.equal((await resumed.run("what was it")).finalResponse, "again");
    assert.match(JSON.stringify(requests.at(-1).body), /remember 17/);
    assert.equal(resumed.id, thread.id);
    await assert.rejects(codex.resumeThread("20200101-000000-abcdef", options).run("x"), /session/);
  },
  async "streamed events"() {
    turns = [{ call: ["run_command", { command: "exit 4" }] }, { text: "done" }];
    const { events } = await codex.startThread(options).runStreamed("x");
    const seen = [];
    for await (const event of events) if (event.item?.type !== "error") seen.push(event);
    const types = seen.map((event) => event.type);
    assert.deepEqual(types, ["thread.started", "turn.started", "item.started", "item.completed", "item.completed", "turn.completed"]);
    assert.deepEqual([seen[3].item.exit_code, seen[3].item.status], [4, "failed"]);
  },
  async "output schema"() {
    turns = [{ text: '{"n": 1}' }];
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
    const turn = await codex.startThread(options).run("a number", { outputSchema: schema });
    assert.deepEqual(JSON.parse(turn.finalResponse), { n: 1 });
  },
  async image() {
    turns = [{ text: "seen" }];
    const path = join(root, "shot.gif");
    writeFileSync(path, Buffer.from("GIF89a\x02\x01\x03\0\0\0\0;", "latin1"));
    await codex.startThread(options).run([{ type: "text", text: "look" }, { type: "local_image", path }]);
    assert.match(JSON.stringify(requests.at(-1).body), /data:image\/gif/);
  },
  async abort() {
    turns = [];
    const abort = new AbortController();
    const before = requests.length;
    const run = codex.startThread(options).run("x", { signal: abort.signal });
    const asked = setInterval(() => requests.length > before && abort.abort(), 10);
    await assert.rejects(run, { name: "AbortError" });
    clearInterval(asked);
  },
  async "a failed run"() {
    turns = [{ status: 400 }];
    await assert.rejects(codex.startThread(options).run("x"), /400/);
  },
  async "step limit"() {
    const config = join(root, "home", "config.yaml");
    writeFileSync(config, "max_steps: 2\n");
    turns = [1, 2, 3].map((number) => ({ call: ["run_command", { command: `echo ${number}` }] })).concat({ text: "so far" });
    await assert.rejects(codex.startThread(options).run("x"), /max_steps/);
    rmSync(config);
  },
  async "read-only"() {
    turns = [{ call: ["run_command", { command: "touch no.txt" }] }, { call: ["write_file", { path: "no.txt", content: "x" }] }, { text: "done" }];
    const turn = await codex.startThread({ ...options, sandboxMode: "read-only" }).run("x");
    assert.deepEqual(turn.items.filter((item) => item.type !== "error").map((item) => item.status), ["failed", "failed", undefined]);
    assert.ok(!existsSync(join(workspace, "no.txt")));
  },
};
for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
server.closeAllConnections();
server.close();
