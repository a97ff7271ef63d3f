// Runs agents with the client of AG-UI, as web pages do. Its verification is on; each warning is a failure.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [base, token, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { HttpAgent, buildResumeArray } = await load("@ag-ui/client");
const { EventSchemas } = await load("@ag-ui/core/schemas");

const warnings = [];
console.warn = (...parts) => warnings.push(parts.join(" "));

function agent(name, threadId) {
  const headers = { Authorization: `Bearer ${token}` };
  return new HttpAgent({ url: `${base}/agents/${name}/ag-ui`, headers, threadId });
}

// Runs an agent, and returns its events in short, with what the page learned at the end.
async function run(agent, parameters = {}, seen = () => {}) {
  const events = [];
  let finished;
  await agent.runAgent(parameters, {
    onEvent({ event }) {
      EventSchemas.parse(event);
      events.push(event);
      seen(event);
    },
    onRunFinishedEvent(parameters) {
      finished = parameters;
    },
  });
  // Texts arrive in any number of pieces.
  const types = events.map((event) => event.type).filter((type, index, all) => type !== all[index - 1]);
  return { events, types, finished };
}

const say = (agent, content) => agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
const texts = (agent, role) => agent.messages.filter((message) => message.role === role).map((message) => message.content);

// Text, a tool of the agent, and a second turn of the same thread.
const greeter = agent("greeter", "thread-greeter");
say(greeter, "Hi");
let turn = await run(greeter);
assert.deepEqual(turn.types, [
  "RUN_STARTED",
  "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED",
  "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT",
  "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED",
  "RUN_FINISHED",
]);
assert.equal(turn.finished.outcome, "success");
assert.equal(turn.events.at(-1).usage[0].totalTokens, 26);
assert.equal(turn.events.at(-1).usage[0].cachedInputTokens, 8);
assert.deepEqual(texts(greeter, "assistant"), ["Let me look.", "Hello!"]);
assert.deepEqual(texts(greeter, "tool"), ["seen"]);
assert.equal(greeter.messages[1].toolCalls[0].function.name, "look");
say(greeter, "Again");
await run(greeter);
assert.equal(texts(greeter, "assistant").at(-1), "Hello again!");

// A thread that the server does not know has the history of the page.
const moved = agent("greeter", "thread-moved");
moved.setMessages(greeter.messages.slice(0, -1));
await run(moved);
assert.equal(texts(moved, "assistant").at(-1), "Hello again!");

// An approval: the run ends with an interrupt, which the next one answers.
for (const [approved, result] of [[true, "paid"], [false, "too much"]]) {
  const clerk = agent("clerk", `thread-clerk-${approved}`);
  say(clerk, "Pay");
  turn = await run(clerk);
  assert.equal(turn.finished.outcome, "interrupt");
  const [interrupt] = clerk.pendingInterrupts;
  assert.equal(interrupt.reason, "tool_call");
  assert.match(interrupt.message, /approval of `pay` with \{"euros":5\}/);
  assert.ok(new Date(interrupt.expiresAt) > new Date());
  assert.equal(clerk.messages.at(-1).toolCalls[0].id, interrupt.toolCallId);
  const payload = approved ? { approved } : { approved, reason: "too much" };
  turn = await run(clerk, { resume: buildResumeArray(clerk.pendingInterrupts, { [interrupt.id]: { status: "resolved", payload } }) });
  assert.equal(turn.finished.outcome, "success");
  assert.equal(clerk.pendingInterrupts.length, 0);
  assert.equal(clerk.messages.flatMap((message) => message.toolCalls ?? []).length, 1);
  assert.match(texts(clerk, "tool")[0], new RegExp(result));
  assert.equal(texts(clerk, "assistant").at(-1), "Done.");
}

// A tool of the page, beside one of the agent.
const painter = agent("painter", "thread-painter");
const context = [{ description: "Note", value: "The door is old." }];
const parameters = { type: "object", properties: { of: { type: "string" } }, required: ["of"] };
const tools = [{ name: "pick__color", description: "Picks a color", parameters }];
say(painter, "Paint");
turn = await run(painter, { tools, context });
assert.equal(turn.finished.pendingToolCallIds.length, 1);
const picked = painter.messages.flatMap((message) => message.toolCalls ?? []).find((call) => call.id === turn.finished.pendingToolCallIds[0]);
assert.equal(picked.function.name, "pick__color");
assert.deepEqual(JSON.parse(picked.function.arguments), { of: "door" });
painter.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: picked.id, content: "red" });
turn = await run(painter, { tools, context });
assert.equal(turn.finished.outcome, "success");
assert.equal(texts(painter, "assistant").at(-1), "Painted.");

// A called agent, whose call needs approval.
const boss = agent("boss", "thread-boss");
say(boss, "Pay");
turn = await run(boss);
const [inner] = boss.pendingInterrupts;
assert.equal(turn.finished.outcome, "interrupt");
assert.deepEqual(turn.types.slice(1, 7), [
  "STEP_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END",
]);
assert.deepEqual(texts(boss, "reasoning"), ["Who pays?"]);
const started = turn.events.find((event) => event.type === "SUBAGENT_STARTED");
assert.equal(started.name, "clerk");
assert.equal(inner.subagentRunId, started.subagentRunId);
assert.deepEqual(turn.events.find((event) => event.type === "SUBAGENT_FINISHED").outcome, { type: "suspended", interruptIds: [inner.id] });
turn = await run(boss, { resume: [{ interruptId: inner.id, status: "resolved", payload: { approved: true } }] });
assert.equal(turn.finished.outcome, "success");
assert.ok(turn.types.includes("SUBAGENT_STARTED") && turn.types.includes("SUBAGENT_FINISHED"));
const outer = boss.messages.filter((message) => !message.subagentRunId);
assert.deepEqual(outer.map((message) => message.role), ["user", "reasoning", "assistant", "tool", "assistant"]);
assert.equal(outer.at(-1).content, "All paid.");

// A run that the page gives up. The client itself says so with an error.
const slow = agent("slow", "thread-slow");
say(slow, "Wait");
turn = await run(slow, {}, ({ type }) => type === "TOOL_CALL_RESULT" && setTimeout(() => slow.abortRun(), 100));
assert.equal(turn.types.at(-1), "RUN_ERROR");
assert.deepEqual(texts(slow, "tool"), ["paid"]);

// A value, and a run that fails.
const counter = agent("counter", "thread-counter");
say(counter, "Count");
turn = await run(counter);
assert.deepEqual(turn.finished.result, { count: 3 });
assert.deepEqual(JSON.parse(texts(counter, "assistant")[0]), { count: 3 });
const broken = agent("broken", "thread-broken");
say(broken, "Fail");
turn = await run(broken).catch((error) => ({ error }));
const failure = turn.error?.message ?? turn.events.at(-1).message;
assert.match(failure, /out of order/);

// Errors before a run are ordinary responses, whose text the client reports.
await assert.rejects(run(agent("nobody", "thread-nobody")), /messages|nobody/);
const unknown = agent("nobody", "thread-nobody");
say(unknown, "Hi");
await assert.rejects(run(unknown), /nobody/);
const stale = agent("clerk", "thread-clerk-true");
say(stale, "Hi");
await assert.rejects(run(stale, { resume: [{ interruptId: "x", status: "resolved", payload: { approved: true } }] }), /no call waits/);

assert.deepEqual(warnings, []);
console.log("ok");
