// A small client of `agent serve`: JSON-RPC 2.0, one message a line, with Node 22 or later alone.
//
//     const client = new AgentClient(["agent", "serve", "--mode", "confirm-sensitive"]);
//     const { result } = await client.run("Fix the tests", { approve: () => "deny" });
//     console.log(result.status, result.output);
//     await client.close();

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

export type Decision = "allow" | "allow_always" | "deny" | "stop";
export type Limits = { mode?: string; max_steps?: number; budget_usd?: number; timeout_seconds?: number };
export type Event = { type: string; seq?: number; [key: string]: unknown };
export type Question = {
  id: string; call_id: string; tool: string; summary: string; reason: string; notes: string[]; preview: string | null; always_scope: string;
};
export type Result = { status: "success" | "partial" | "failed"; stop_reason: string | null; output: unknown; [key: string]: unknown };
export type Session = { id: string; state: "working" | "ended" | "unfinished"; task: string; [key: string]: unknown };
export type Handlers = { approve: (question: Question) => Decision | Promise<Decision>; event?: (event: Event) => void };

/** The error of a response. */
export class AgentError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(error: { code: number; message: string; data?: unknown }) {
    super(`${error.message} (${error.code})`);
    this.code = error.code;
    this.data = error.data;
  }
}

type Waiting<T> = { resolve: (value: T) => void; reject: (error: Error) => void };

/** Starts the server and speaks with it; closing it interrupts all runs. */
export class AgentClient {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<number | null>;
  #lastId = 0;
  readonly #responses = new Map<number, Waiting<any>>();
  readonly #runs = new Map<string, Waiting<Result> & Handlers>();
  /** Notifications of sessions for which nobody waits yet. */
  readonly #early = new Map<string, any[]>();

  constructor(command: string[] = ["agent", "serve"]) {
    const [program, ...args] = command;
    this.#process = spawn(program!, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#ended = new Promise((resolve) => this.#process.on("close", resolve));
    this.#process.stdin.on("error", () => {});
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#receive(JSON.parse(line)));
    void this.#ended.then(() => {
      const error = new Error("the server has ended");
      for (const waiting of [...this.#responses.values(), ...this.#runs.values()]) waiting.reject(error);
    });
  }

  /** Ends the server and returns its exit code. */
  close(): Promise<number | null> {
    this.#process.stdin.end();
    return this.#ended;
  }

  request(method: string, params: object = {}): Promise<any> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#responses.set(id, { resolve, reject });
      this.#process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  /** Begins a session and returns its id; `wait` for its end. */
  async start(task: string, options: { agent?: string; model?: string; limits?: Limits } = {}): Promise<string> {
    return (await this.request("start", { task, ...options })).session_id;
  }

  async send(sessionId: string, prompt: string, limits: Limits = {}): Promise<void> {
    await this.request("send", { session_id: sessionId, prompt, limits });
  }

  async interrupt(sessionId: string): Promise<void> {
    await this.request("interrupt", { session_id: sessionId });
  }

  async approve(sessionId: string, questionId: string, decision: Decision, reason?: string): Promise<void> {
    await this.request("approve", { session_id: sessionId, question_id: questionId, decision, reason });
  }

  /** Returns a page of the sessions, newest first. */
  list(cursor?: string): Promise<{ sessions: Session[]; next_cursor: string | null }> {
    return this.request("list", { cursor });
  }

  /** Has the stored events sent again; `wait` receives them. */
  subscribe(sessionId: string, fromSeq = 0): Promise<{ next_seq: number; is_working: boolean; damaged: number }> {
    return this.request("subscribe", { session_id: sessionId, from_seq: fromSeq });
  }

  undo(sessionId: string, options: { to_step?: number; file?: string; force?: boolean } = {}): Promise<{ changed: object[]; warnings: string[] }> {
    return this.request("undo", { session_id: sessionId, ...options });
  }

  /** Waits for the end of the run of a session and returns its result. */
  wait(sessionId: string, handlers: Handlers): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#runs.set(sessionId, { ...handlers, resolve, reject });
      const early = this.#early.get(sessionId) ?? [];
      this.#early.delete(sessionId);
      for (const notification of early) this.#notified(notification);
    });
  }

  /** Runs a task in a new session. */
  async run(task: string, handlers: Handlers): Promise<{ sessionId: string; result: Result }> {
    const sessionId = await this.start(task);
    return { sessionId, result: await this.wait(sessionId, handlers) };
  }

  #receive(message: any): void {
    if (message.method) return this.#notified(message);
    const waiting = this.#responses.get(message.id);
    this.#responses.delete(message.id);
    if (message.error) waiting?.reject(new AgentError(message.error));
    else waiting?.resolve(message.result);
  }

  #notified(notification: any): void {
    const { method, params } = notification;
    const run = this.#runs.get(params.session_id);
    if (!run) {
      this.#early.set(params.session_id, [...(this.#early.get(params.session_id) ?? []), notification]);
    } else if (method === "event") {
      run.event?.(params.event);
    } else if (method === "approval") {
      void this.#answer(params.session_id, params.question, run).catch(run.reject);
    } else if (method === "finished") {
      this.#runs.delete(params.session_id);
      run.resolve(params.result);
    }
  }

  async #answer(sessionId: string, question: Question, handlers: Handlers): Promise<void> {
    await this.approve(sessionId, question.id, await handlers.approve(question));
  }
}
