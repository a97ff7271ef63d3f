// Drives whole sessions with the SDK of the protocol, as an editor does. Each message of the agent must satisfy the schema.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [program, folder, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const sdk = `${packages}/@agentclientprotocol/sdk`;
const acp = await import(pathToFileURL(`${sdk}/dist/v1/stable/acp.js`));
const { default: Ajv } = await import(pathToFileURL(require.resolve("ajv/dist/2020.js")));
const schema = JSON.parse(readFileSync(`${sdk}/schema/v1/schema.json`));
const ajv = new Ajv({ strict: false, validateFormats: false }).addSchema({ ...schema, $id: "acp" });
const { agent: methods, client } = acp.methods;

const results = {
  [methods.initialize]: "InitializeResponse",
  [methods.session.new]: "NewSessionResponse",
  [methods.session.load]: "LoadSessionResponse",
  [methods.session.list]: "ListSessionsResponse",
  [methods.session.delete]: "DeleteSessionResponse",
  [methods.session.resume]: "ResumeSessionResponse",
  [methods.session.close]: "CloseSessionResponse",
  [methods.session.setMode]: "SetSessionModeResponse",
  [methods.session.setConfigOption]: "SetSessionConfigOptionResponse",
  [methods.session.prompt]: "PromptResponse",
};
const params = {
  [client.session.update]: "SessionNotification",
  [client.session.requestPermission]: "RequestPermissionRequest",
};
const kinds = new Set();

function satisfies(name, value) {
  const validate = ajv.getSchema(`acp#/$defs/${name}`);
  assert(validate, `no schema ${name}`);
  assert(validate(value), `${name}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
  kinds.add(name);
}

// An editor: starts the agent, and remembers what it learns.
class Editor {
  constructor() {
    this.child = spawn(program, ["serve", "--acp"], { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
    this.stderr = "";
    this.child.stderr.on("data", (data) => (this.stderr += data));
    this.exit = new Promise((resolve) => this.child.on("exit", (code) => resolve(code)));
    this.updates = [];
    this.permissions = [];
    this.decide = () => assert.fail("no permission is expected");
    this.sent = new Map();
    const toAgent = new TransformStream({ transform: (chunk, out) => (this.outgoing(chunk), out.enqueue(chunk)) });
    toAgent.readable.pipeTo(Writable.toWeb(this.child.stdin)).catch(() => {});
    this.rest = "";
    const fromAgent = new TransformStream({ transform: (chunk, out) => (this.incoming(chunk), out.enqueue(chunk)) });
    const stream = acp.ndJsonStream(toAgent.writable, Readable.toWeb(this.child.stdout).pipeThrough(fromAgent));
    const app = acp
      .client({ name: "test" })
      .onRequest(client.session.requestPermission, async ({ params }) => {
        this.permissions.push(params);
        return { outcome: await this.decide(params) };
      })
      .onNotification(client.session.update, ({ params }) => {
        this.updates.push(params.update);
      });
    this.connection = app.connect(stream);
    this.agent = this.connection.agent ?? this.connection;
  }

  outgoing(chunk) {
    for (const line of Buffer.from(chunk).toString().trim().split("\n")) {
      const message = JSON.parse(line);
      if (message.method && message.id !== undefined) this.sent.set(message.id, message.method);
    }
  }

  incoming(chunk) {
    const lines = (this.rest + Buffer.from(chunk).toString()).split("\n");
    this.rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      try {
        if (message.method) satisfies(params[message.method], message.params);
        else if (message.error) satisfies("Error", message.error);
        else satisfies(results[this.sent.get(message.id)], message.result);
      } catch (error) {
        this.broken ??= error;
      }
    }
  }

  async open() {
    const capabilities = { session: { notices: {} } };
    const initialized = await this.request(methods.initialize, { protocolVersion: 7, clientCapabilities: capabilities });
    assert.equal(initialized.protocolVersion, 1);
    return initialized;
  }

  async request(method, params) {
    const result = await this.agent.request(method, params);
    if (this.broken) throw this.broken;
    return result;
  }

  async prompt(sessionId, text) {
    this.updates.length = 0;
    this.permissions.length = 0;
    const prompt = typeof text === "string" ? [{ type: "text", text }] : text;
    const { stopReason } = await this.request(methods.session.prompt, { sessionId, prompt });
    return stopReason;
  }

  text(kind = "agent_message_chunk") {
    return this.updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
  }

  calls() {
    return this.updates.filter((update) => update.sessionUpdate.startsWith("tool_call"));
  }

  async fails(method, params, code, message) {
    const error = await this.agent.request(method, params).then(
      () => assert.fail(`${method} succeeds`),
      (error) => error,
    );
    assert.equal(error.code, code, `${method}: ${error}`);
    assert.match(error.message, message);
  }

  async close() {
    this.child.stdin.end();
    const code = await this.exit;
    assert.equal(code, 0, this.stderr);
    assert.equal(this.rest, "");
    if (this.broken) throw this.broken;
  }
}

const paid = () => {
  try {
    return readFileSync(`${folder}/paid.txt`, "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
};
const allow = () => ({ outcome: "selected", optionId: "allow" });
const reject = () => ({ outcome: "selected", optionId: "reject" });

const editor = new Editor();
const initialized = await editor.open();
assert.equal(initialized.agentInfo.name, "patter");
assert.deepEqual(initialized.authMethods, []);
assert.equal(initialized.agentCapabilities.promptCapabilities.image, true);

// Each agent is a mode, and a value of an option.
const server = { name: "evil", command: "/bin/sh", args: ["-c", `touch ${folder}/evil`], env: [] };
const created = await editor.request(methods.session.new, { cwd: folder, mcpServers: [server] });
const sessionId = created.sessionId;
assert.equal(created.modes.currentModeId, "boss");
assert.deepEqual(created.modes.availableModes.map((mode) => mode.id).sort(), ["boss", "clerk", "greeter", "slow"]);
assert.equal(created.configOptions[0].currentValue, "boss");
assert.match(editor.updates[0].title, /^MCP servers of the editor are not used/);
await editor.request(methods.session.setConfigOption, { sessionId, configId: "agent", value: "greeter" });
assert.equal(editor.updates.at(-1).currentModeId, "greeter");

// Text arrives in pieces, and files are part of the message.
const file = { uri: "file:///work/notes.md", text: "Ada", mimeType: "text/markdown" };
const blocks = [
  { type: "text", text: "Greet the person in " },
  { type: "resource", resource: file },
  { type: "resource_link", uri: "file:///work/b.md", name: "b.md" },
];
assert.equal(await editor.prompt(sessionId, blocks), "end_turn");
assert.equal(editor.text(), "Hello, Ada! How are you?");
const info = editor.updates.at(-1);
assert.equal(info.sessionUpdate, "session_info_update");
assert.match(info.title, /^Greet the person in \[notes.md\]/);
assert(!Number.isNaN(Date.parse(info.updatedAt)));
assert(editor.updates.filter((update) => update.sessionUpdate === "agent_message_chunk").length > 1);

// A call is made only once the user allows it.
await editor.request(methods.session.setMode, { sessionId, modeId: "clerk" });
assert.equal(editor.updates.at(-1).configOptions[0].currentValue, "clerk");
const pays = await editor.request(methods.session.new, { cwd: folder, mcpServers: [] });
const payer = pays.sessionId;
await editor.request(methods.session.setMode, { sessionId: payer, modeId: "clerk" });
editor.decide = (request) => {
  assert.equal(paid(), 0);
  assert.deepEqual(request.options.map((option) => option.kind), ["allow_once", "reject_once"]);
  assert.deepEqual(request.toolCall.rawInput, { euros: 5 });
  assert.equal(request.toolCall.title, 'till/pay `{"euros":5}`');
  return allow();
};
assert.equal(await editor.prompt(payer, "Pay"), "end_turn");
assert.equal(paid(), 1);
const statuses = editor.calls().map((call) => [call.sessionUpdate, call.status]);
const progress = ["tool_call_update", "in_progress"];
assert.deepEqual(statuses, [["tool_call", "pending"], progress, ["tool_call_update", "completed"]]);
assert.equal(editor.calls()[0].kind, "execute");
assert.equal(editor.calls()[2].rawOutput, "paid");
assert.equal(editor.text(), "Paid.");

editor.decide = reject;
assert.equal(await editor.prompt(payer, "Pay again"), "end_turn");
assert.equal(paid(), 1);
assert.deepEqual(editor.calls().map((call) => call.status), ["pending", "failed"]);
assert.match(editor.calls()[1].content[0].content.text, /the user did not approve the call/);
assert.equal(editor.text(), "Not paid.");

// What is none of the options, and an editor that fails, refuse the call.
for (const answer of [() => ({ outcome: "selected", optionId: "always" }), () => Promise.reject(new Error("no window"))]) {
  editor.decide = answer;
  await editor.prompt(payer, "Pay again");
  assert.equal(editor.calls().at(-1).status, "failed");
}
assert.equal(paid(), 1);

// A turn can be cancelled while it waits for the user, and while the model replies.
const asked = new Promise((resolve) => {
  editor.decide = async () => {
    resolve();
    return new Promise((answer) => (editor.answer = answer));
  };
});
let prompt = editor.prompt(payer, "Pay again");
await asked;
await editor.fails(methods.session.prompt, { sessionId: payer, prompt: [{ type: "text", text: "?" }] }, -32600, /under way/);
await editor.agent.notify(methods.session.cancel, { sessionId: payer });
editor.answer({ outcome: "cancelled" });
assert.equal(await prompt, "cancelled");
assert.equal(editor.calls().at(-1).status, "failed");
const third = await editor.request(methods.session.new, { cwd: folder, mcpServers: [] });
await editor.request(methods.session.setMode, { sessionId: third.sessionId, modeId: "slow" });
const before = Date.now();
prompt = editor.prompt(third.sessionId, "Wait");
await new Promise((resolve) => setTimeout(resolve, 300));
await editor.agent.notify(methods.session.cancel, { sessionId: third.sessionId });
assert.equal(await prompt, "cancelled");
assert(Date.now() - before < 10_000);

// The calls of agents that agents call are visible, and need permission too.
editor.decide = allow;
const nested = await editor.request(methods.session.new, { cwd: folder, mcpServers: [] });
assert.equal(await editor.prompt(nested.sessionId, "Let the clerk pay"), "end_turn");
assert.equal(paid(), 2);
const outer = editor.calls().find((call) => call.kind === "think");
const inner = editor.calls().find((call) => call.kind === "execute");
assert(inner.toolCallId.startsWith(`${outer.toolCallId}/`));
assert.match(inner.title, /^clerk: till\/pay/);
assert.equal(editor.text(), "Let me ask. The clerk has paid.");

// Wrong input.
const wrong = { cwd: folder, mcpServers: [] };
await editor.fails("session/none", {}, -32601, /no method `session\/none`/);
await editor.fails(methods.authenticate, { methodId: "x" }, -32602, /no authentication methods/);
await editor.fails(methods.session.new, { ...wrong, cwd: "here" }, -32602, /`cwd`: is not an absolute path/);
await editor.fails(methods.session.prompt, { sessionId: "none", prompt: [{ type: "text", text: "a" }] }, -32002, /not open/);
await editor.fails(methods.session.prompt, { sessionId, prompt: [] }, -32602, /`prompt`: is empty/);
const image = { type: "image", mimeType: "image/png", data: "" };
await editor.fails(methods.session.prompt, { sessionId, prompt: [image] }, -32602, /`image` is empty/);
const audio = { type: "audio", mimeType: "audio/wav", data: "" };
await editor.fails(methods.session.prompt, { sessionId, prompt: [audio] }, -32602, /`audio` is not supported/);
await editor.fails(methods.session.setMode, { sessionId, modeId: "none" }, -32602, /no agent `none`/);
await editor.fails(methods.session.load, { ...wrong, sessionId: "none" }, -32002, /no session `none`/);
await editor.request(methods.session.setMode, { sessionId, modeId: "greeter" });
await editor.fails(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: "a" }] }, -32603, /out of order/);

// An editor that is gone approves nothing: the call waits.
const last = await editor.request(methods.session.new, { cwd: folder, mcpServers: [] });
await editor.request(methods.session.setMode, { sessionId: last.sessionId, modeId: "clerk" });
const left = new Promise((resolve) => (editor.decide = () => new Promise(() => resolve())));
editor.prompt(last.sessionId, "Pay").catch(() => {});
await left;
await editor.close();
assert.equal(paid(), 2);

// Another process shows the same session, and continues it.
const next = new Editor();
await next.open();
const listed = await next.request(methods.session.list, { cwd: folder });
assert.equal(listed.sessions.length, 5);
assert.equal(listed.sessions[0].cwd, folder);
const loaded = await next.request(methods.session.load, { sessionId: payer, cwd: folder, mcpServers: [] });
assert.equal(loaded.modes.currentModeId, "clerk");
assert.equal(next.text("user_message_chunk"), "PayPay againPay againPay againPay again");
assert.equal(next.text(), "Paid.Not paid.Not paid.Not paid.");
assert.deepEqual(next.calls().slice(0, 2).map((call) => call.status), ["in_progress", "completed"]);
assert.equal(next.calls()[0].kind, "execute");

next.updates.length = 0;
await next.request(methods.session.load, { sessionId: last.sessionId, cwd: folder, mcpServers: [] });
assert.deepEqual(next.calls().map((call) => [call.sessionUpdate, call.status]), [["tool_call", "pending"]]);
next.decide = allow;
assert.equal(await next.prompt(last.sessionId, "Pay again"), "end_turn");
assert.equal(next.permissions.length, 2);
assert.equal(next.text(), "Paid.Not paid.");
assert.equal(paid(), 4);

const resumed = await next.request(methods.session.resume, { sessionId: nested.sessionId, cwd: folder, mcpServers: [] });
assert.equal(resumed.modes.currentModeId, "boss");
await next.request(methods.session.close, { sessionId: nested.sessionId });
await next.fails(methods.session.prompt, { sessionId: nested.sessionId, prompt: blocks }, -32002, /not open/);
for (let time = 0; time < 2; time++) await next.request(methods.session.delete, { sessionId: nested.sessionId });
const rest = await next.request(methods.session.list, {});
assert.equal(rest.sessions.length, 4);
await next.close();

for (const name of [...Object.values(results), ...Object.values(params), "Error"]) assert(kinds.has(name), name);
assert.throws(() => readFileSync(`${folder}/evil`));
console.log("ok");
