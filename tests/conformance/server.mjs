#!/usr/bin/env node
// Makes `agent mcp serve` reachable for MCP's conformance tests of servers, which speak HTTP: listens on a free port of this machine, prints
// the address, and passes each message on. A session has a process of its own; messages without a session share one.
// AGENT_BIN: the program under test. The arguments go to `agent mcp serve`.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

class Agent {
  waiting = new Map();

  constructor() {
    this.child = spawn(process.env.AGENT_BIN, ["mcp", "serve", ...process.argv.slice(2)], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
    if (message.id === undefined || message.method === undefined) return null;
    return new Promise((done) => this.waiting.set(message.id, done));
  }
}

const sessions = new Map();
const server = createServer(async (request, response) => {
  const reply = (status, headers, body) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body && JSON.stringify(body));
  };
  // Of the transport, which is no part of the program: a browser's page may not reach a server on this machine.
  const local = /^(localhost|127\.0\.0\.1)(:\d+)?$/;
  const origin = request.headers.origin && new URL(request.headers.origin).host;
  if (!local.test(request.headers.host) || (origin && !local.test(origin))) return reply(403);
  if (request.method !== "POST") return reply(405);
  let text = "";
  for await (const chunk of request) text += chunk;
  const message = JSON.parse(text);
  let session = request.headers["mcp-session-id"] ?? "none";
  if (message.method === "initialize") session = randomUUID();
  if (!sessions.has(session)) sessions.set(session, new Agent());
  const answer = await sessions.get(session).send(message);
  const headers = message.method === "initialize" ? { "mcp-session-id": session } : {};
  return answer ? reply(200, headers, answer) : reply(202, headers);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.on("SIGTERM", () => {
  for (const agent of sessions.values()) agent.child.kill();
  process.exit(0);
});
