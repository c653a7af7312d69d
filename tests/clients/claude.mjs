// Drives the program with `@anthropic-ai/claude-agent-sdk`: two turns, resume, fork, schema, image, abort, interrupt, canUseTool, hooks, an MCP server in the
// process, step limit, a failed run. `tests/claude.sh` runs it.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const root = mkdtempSync(join(tmpdir(), "agent-claude-"));
const requests = [];
let turns = [];

/** The events of a streamed message. */
function* events(message) {
  yield { type: "message_start", message: { ...message, content: [], stop_reason: null } };
  for (const [index, block] of message.content.entries()) {
    const { text, input } = block;
    const delta = text === undefined ? { type: "input_json_delta", partial_json: JSON.stringify(input) } : { type: "text_delta", text };
    yield { type: "content_block_start", index, content_block: text === undefined ? { ...block, input: {} } : { ...block, text: "" } };
    yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason: message.stop_reason }, usage: message.usage };
  yield { type: "message_stop" };
}

/** A model server in the format of Anthropic's messages; it answers request after request with `turns`. */
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    requests.push({ path: request.url, key: request.headers["x-api-key"], body: JSON.parse(body) });
    const turn = turns.shift();
    if (turn === undefined) return; // never answers
    if (turn.status) return response.writeHead(turn.status).end("{}");
    const content = turn.call
      ? [{ type: "tool_use", id: `toolu_${requests.length}`, name: turn.call[0], input: turn.call[1] }]
      : [{ type: "text", text: turn.text }];
    const usage = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 3 };
    const message = { id: "m", type: "message", role: "assistant", model: "mock", content, stop_reason: turn.call ? "tool_use" : "end_turn", usage };
    if (!requests.at(-1).body.stream) {
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify(message));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events(message)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const workspace = () => mkdtempSync(join(root, "workspace-"));
const defaults = (cwd) => ({
  pathToClaudeCodeExecutable: process.env.AGENT_BIN,
  cwd,
  model: "mock",
  env: {
    PATH: process.env.PATH,
    HOME: root,
    AGENT_HOME: join(root, "home"),
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`,
    ANTHROPIC_API_KEY: "sk-ant-test-0123456789abcdef",
  },
});

/** All messages of a query, and the error that ended it. */
async function collect(prompt, options) {
  const messages = [];
  try {
    for await (const message of query({ prompt, options })) messages.push(message);
    return { messages, result: messages.findLast((message) => message.type === "result") };
  } catch (error) {
    return { messages, result: messages.findLast((message) => message.type === "result"), error };
  }
}

const told = () => JSON.stringify(requests.at(-1).body);
const user = (content) => ({ type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content } });

const tests = {
  async "two turns in one query"() {
    const cwd = workspace();
    turns = [{ call: ["read_file", { path: "none.txt" }] }, { text: "first" }, { text: "second" }];
    const seen = [];
    let next;
    const gate = new Promise((resolve) => (next = resolve));
    async function* prompts() {
      yield user("one");
      await gate;
      yield user([{ type: "text", text: "two" }]);
    }
    for await (const message of query({ prompt: prompts(), options: defaults(cwd) })) {
      seen.push(message);
      if (message.type === "result") next();
    }
    const results = seen.filter((message) => message.type === "result");
    assert.deepEqual(results.map((result) => [result.subtype, result.result]), [["success", "first"], ["success", "second"]]);
    assert.equal(seen[0].subtype, "init");
    assert.equal(seen[0].model, "mock");
    assert.ok(seen[0].tools.includes("Bash"));
    assert.match(told(), /one.*first.*two/);
    assert.equal(requests.at(-1).key, "sk-ant-test-0123456789abcdef");
    assert.equal(requests.at(-1).path, "/v1/messages");
    assert.deepEqual([results[0].num_turns, results[0].usage.input_tokens, results[0].usage.cache_read_input_tokens], [2, 20, 8]);
    const used = seen.find((message) => message.type === "assistant").message.content[0];
    assert.deepEqual([used.name, used.input.file_path], ["Read", join(cwd, "none.txt")]);
    const answered = seen.find((message) => message.type === "user").message.content[0];
    assert.deepEqual([answered.tool_use_id, answered.is_error], [used.id, true]);
  },
  async "resume, fork and continue"() {
    const options = defaults(workspace());
    turns = [{ text: "known" }, { text: "again" }, { text: "copied" }, { text: "on" }];
    const first = await collect("remember 17", options);
    const id = first.result.session_id;
    assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const again = await collect("what was it", { ...options, resume: id });
    assert.deepEqual([again.result.result, again.result.session_id], ["again", id]);
    assert.match(told(), /remember 17/);
    const copied = await collect("and now", { ...options, resume: id, forkSession: true });
    assert.notEqual(copied.result.session_id, id);
    assert.match(told(), /remember 17.*what was it/);
    const on = await collect("go on", { ...options, continue: true });
    assert.equal(on.result.result, "on");
    assert.match(told(), /remember 17/);
    const missing = await collect("x", { ...options, resume: "0198f2c4-1a2b-4c3d-8e4f-5a6b7c8d9e0f" });
    assert.equal(missing.result.subtype, "error_during_execution");
    assert.match(missing.error.message, /session/);
  },
  async "output schema"() {
    turns = [{ text: '{"n": 1}' }];
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
    const { result } = await collect("a number", { ...defaults(workspace()), outputFormat: { type: "json_schema", schema } });
    assert.deepEqual(result.structured_output, { n: 1 });
  },
  async image() {
    turns = [{ text: "seen" }];
    const data = Buffer.from("GIF89a\x02\x01\x03\0\0\0\0;", "latin1").toString("base64");
    async function* prompts() {
      yield user([{ type: "text", text: "look" }, { type: "image", source: { type: "base64", media_type: "image/gif", data } }]);
    }
    const { result } = await collect(prompts(), defaults(workspace()));
    assert.equal(result.result, "seen");
    assert.ok(told().includes(data));
  },
  async "partial messages"() {
    turns = [{ call: ["read_file", { path: "x" }] }, { text: "done" }];
    const { messages } = await collect("x", { ...defaults(workspace()), includePartialMessages: true });
    const streamed = messages.filter((message) => message.type === "stream_event").map(({ event }) => event.type);
    assert.equal(streamed.filter((type) => type === "message_start").length, 2);
    assert.equal(streamed.filter((type) => type === "message_stop").length, 2);
    assert.ok(streamed.includes("content_block_delta"));
  },
  async abort() {
    turns = [];
    const abortController = new AbortController();
    const before = requests.length;
    const asked = setInterval(() => requests.length > before && abortController.abort(), 10);
    const { error, result } = await collect("x", { ...defaults(workspace()), abortController });
    clearInterval(asked);
    assert.equal(result, undefined);
    assert.match(error.message, /abort/);
  },
  async interrupt() {
    turns = [];
    const before = requests.length;
    let stop;
    const stopped = new Promise((resolve) => (stop = resolve));
    async function* prompts() {
      yield user("x");
      await stopped;
    }
    const running = query({ prompt: prompts(), options: defaults(workspace()) });
    const asked = setInterval(() => requests.length > before && (clearInterval(asked), running.interrupt()), 10);
    let result;
    try {
      for await (const message of running) {
        if (message.type === "result") {
          result = message;
          stop();
        }
      }
    } catch (error) {
      assert.match(error.message, /error result/);
    }
    assert.deepEqual([result.subtype, result.is_error], ["error_during_execution", true]);
  },
  async "canUseTool: yes, no and other arguments"() {
    const cwd = workspace();
    const write = (path) => ({ call: ["write_file", { path, content: "x" }] });
    turns = [write("yes.txt"), write("no.txt"), write("other.txt"), { text: "done" }];
    const asked = [];
    const canUseTool = async (name, input) => {
      asked.push([name, input.file_path]);
      if (input.file_path.endsWith("no.txt")) return { behavior: "deny", message: "not this one" };
      if (input.file_path.endsWith("other.txt")) return { behavior: "allow", updatedInput: { ...input, file_path: join(cwd, "instead.txt") } };
      return { behavior: "allow", updatedInput: input };
    };
    const { result } = await collect("write", { ...defaults(cwd), canUseTool });
    assert.deepEqual(asked, ["yes.txt", "no.txt", "other.txt"].map((name) => ["Write", join(cwd, name)]));
    assert.deepEqual(["yes.txt", "no.txt", "other.txt", "instead.txt"].map((name) => existsSync(join(cwd, name))), [true, false, false, true]);
    assert.match(told(), /not this one/);
    assert.deepEqual(result.permission_denials.map((denial) => denial.tool_name), ["Write"]);
  },
  async "permission modes and lists of tools"() {
    const write = { call: ["write_file", { path: "new.txt", content: "x" }] };
    const run = async (options) => {
      const cwd = workspace();
      turns = [write, { text: "done" }];
      await collect("write", { ...defaults(cwd), ...options });
      return existsSync(join(cwd, "new.txt"));
    };
    assert.equal(await run({}), false);
    assert.equal(await run({ permissionMode: "acceptEdits" }), true);
    assert.equal(await run({ permissionMode: "plan", allowedTools: ["Write"] }), false);
    assert.equal(await run({ permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true }), true);
    assert.equal(await run({ permissionMode: "bypassPermissions" }), false);
    assert.equal(await run({ allowedTools: ["Write"] }), true);
    assert.equal(await run({ allowedTools: ["Write"], disallowedTools: ["Edit", "Write"] }), false);
    assert.ok(!requests.at(-1).body.tools.some((offered) => ["write_file", "apply_patch", "edit_file"].includes(offered.name)));
  },
  async hooks() {
    const cwd = workspace();
    turns = [{ call: ["write_file", { path: "no.txt", content: "x" }] }, { call: ["write_file", { path: "yes.txt", content: "x" }] }, { text: "done" }];
    const seen = [];
    const hooks = {
      PreToolUse: [{
        matcher: "Write|Edit",
        hooks: [async (input) => {
          seen.push([input.hook_event_name, input.tool_name]);
          const isNo = input.tool_input.file_path.endsWith("no.txt");
          return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: isNo ? "deny" : "allow", permissionDecisionReason: "hook says" } };
        }],
      }],
      PostToolUse: [{ hooks: [async (input) => (seen.push([input.hook_event_name, input.tool_name]), {})] }],
      Stop: [{ hooks: [async (input) => (seen.push([input.hook_event_name]), {})] }],
    };
    const { result } = await collect("write", { ...defaults(cwd), hooks });
    assert.equal(result.subtype, "success");
    assert.deepEqual(seen, [["PreToolUse", "Write"], ["PreToolUse", "Write"], ["PostToolUse", "Write"], ["Stop"]]);
    assert.deepEqual(["no.txt", "yes.txt"].map((name) => existsSync(join(cwd, name))), [false, true]);
    assert.match(told(), /hook says/);
  },
  async "an MCP server in the process"() {
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: "text", text: `sum ${a + b}` }] }));
    const mcpServers = { calc: createSdkMcpServer({ name: "calc", version: "1", tools: [add] }) };
    turns = [{ call: ["mcp__calc__add", { a: 40, b: 2 }] }, { text: "done" }];
    const { messages, result } = await collect("add", { ...defaults(workspace()), mcpServers, allowedTools: ["mcp__calc__add"] });
    assert.equal(result.subtype, "success");
    assert.match(told(), /sum 42/);
    const init = messages.find((message) => message.subtype === "init");
    assert.deepEqual(init.mcp_servers, [{ name: "calc", status: "connected" }]);
    assert.ok(init.tools.includes("mcp__calc__add"));
  },
  async "step limit"() {
    const read = { call: ["read_file", { path: "x" }] };
    turns = [read, { text: "stopped" }];
    const { result, error } = await collect("x", { ...defaults(workspace()), maxTurns: 1 });
    assert.equal(result.subtype, "error_max_turns");
    assert.match(error.message, /max_steps/);
  },
  async "a failed run, and a flag that takes permission away"() {
    turns = [{ status: 400 }];
    const failed = await collect("x", defaults(workspace()));
    assert.deepEqual([failed.result.subtype, failed.result.is_error], ["error_during_execution", true]);
    assert.match(failed.error.message, /400/);
    const refused = await collect("x", { ...defaults(workspace()), sandbox: { enabled: true } });
    assert.match(refused.error.message, /--settings/);
  },
};
const wanted = process.argv[2];
for (const [name, test] of Object.entries(tests)) {
  if (wanted && !name.includes(wanted)) continue;
  await test();
  console.log(`ok ${name}`);
}
server.closeAllConnections();
server.close();
