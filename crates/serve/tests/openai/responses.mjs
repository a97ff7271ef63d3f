// Uses responses with the SDK of OpenAI, as its users do.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [base, token, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const { zodTextFormat } = await load("openai/helpers/zod");
const { z } = await load("zod");

const client = new OpenAI({ baseURL: base, apiKey: token });

const first = await client.responses.create({ model: "greeter", input: "Hi" });
assert.deepEqual(first.output.map((item) => item.type), ["message", "function_call", "function_call_output", "message"]);
assert.equal(first.output_text, "Let me look.Hello!");
assert.equal(first.usage.total_tokens, 26);
const second = await client.responses.create({ model: "greeter", input: "Again", previous_response_id: first.id });
assert.equal(second.output_text, "Hello again!");
const input = [{ role: "user", content: "Hi" }, ...first.output, { role: "user", content: "Again" }];
const echoed = await client.responses.create({ model: "greeter", input, store: false });
assert.equal(echoed.output_text, "Hello again!");

const stream = client.responses.stream({ model: "greeter", input: "Hi" });
const numbers = [];
let middle;
for await (const event of stream) {
  numbers.push(event.sequence_number);
  if (event.type === "response.content_part.done") middle ??= event.sequence_number;
}
const final = await stream.finalResponse();
assert.equal(final.output_text, "Let me look.Hello!");
const rest = [];
const continued = await client.responses.retrieve(final.id, { stream: true, starting_after: middle });
for await (const event of continued) rest.push(event.sequence_number);
assert.deepEqual(rest, numbers.filter((number) => number > middle));

const tools = [
  {
    type: "function",
    name: "pick__color",
    parameters: { type: "object", properties: { of: { type: "string" } } },
    strict: false,
  },
];
for (const streamed of [false, true]) {
  const ask = { model: "painter", input: "Paint the door", instructions: "The door is old.", tools };
  const paused = streamed ? await client.responses.stream(ask).finalResponse() : await client.responses.create(ask);
  const answered = new Set(paused.output.filter((item) => item.type === "function_call_output").map((item) => item.call_id));
  const [call] = paused.output.filter((item) => item.type === "function_call" && !answered.has(item.call_id));
  assert.deepEqual([call.name, call.arguments], ["pick__color", '{"of":"door"}']);
  const output = { type: "function_call_output", call_id: call.call_id, output: "red" };
  const done = await client.responses.create({ model: "painter", input: [output], tools, previous_response_id: paused.id });
  assert.equal(done.output_text, "Painted.");
}

const waiting = await client.responses.create({ model: "clerk", input: "Pay" });
const request = waiting.output.find((item) => item.type === "mcp_approval_request");
const answer = { type: "mcp_approval_response", approval_request_id: request.id, approve: true };
const done = await client.responses.create({ model: "clerk", input: [answer], previous_response_id: waiting.id });
assert.equal(done.output_text, "Done.");

const Count = z.object({ count: z.number().int() });
const format = zodTextFormat(Count, "count");
const parsed = await client.responses.parse({ model: "counter", input: "Count", text: { format } });
assert.deepEqual(parsed.output_parsed, { count: 3 });

let response = await client.responses.create({ model: "slow", input: "Go", background: true });
while (["queued", "in_progress"].includes(response.status)) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  response = await client.responses.retrieve(response.id);
}
assert.equal(response.output_text, "Late.");

await assert.rejects(() => client.responses.create({ model: "nobody", input: "Hi" }), OpenAI.NotFoundError);
await assert.rejects(() => client.responses.create({ model: "greeter", input: [] }), OpenAI.BadRequestError);
const events = [];
for await (const event of await client.responses.create({ model: "broken", input: "Hi", stream: true })) events.push(event);
assert.equal(events.at(-1).type, "response.failed");
console.log("ok");
