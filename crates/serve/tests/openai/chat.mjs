// Uses the server with the SDK of OpenAI, as its users do.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [base, token, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const { zodResponseFormat } = await load("openai/helpers/zod");
const { z } = await load("zod");

const client = new OpenAI({ baseURL: base, apiKey: token });
const messages = [{ role: "user", content: "Hi" }];
const fails = async (kind, work) => {
  try {
    await work();
  } catch (error) {
    assert(error instanceof kind, `${error}`);
    return error;
  }
  assert.fail(`no ${kind.name}`);
};

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert(models.includes("greeter"));

const completion = await client.chat.completions.create({ model: "greeter", messages });
assert.equal(completion.choices[0].message.content, "Let me look.\n\nHello!");
assert.equal(completion.usage.total_tokens, 26);

let text = "";
let usage;
const stream = await client.chat.completions.create({
  model: "greeter",
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.deepEqual([text, usage.total_tokens], ["Let me look.\n\nHello!", 26]);

// The helper that runs tools: the run pauses, the tool runs here, and the run resumes.
let picked = 0;
const tool = {
  type: "function",
  function: {
    name: "pick__color",
    description: "Picks a color",
    parameters: { type: "object", properties: { of: { type: "string" } } },
    parse: JSON.parse,
    function: ({ of }) => {
      assert.equal(of, "door");
      picked += 1;
      return "red";
    },
  },
};
const paint = [
  { role: "system", content: "The door is old." },
  { role: "user", content: "Paint the door" },
];
for (const streamed of [false, true]) {
  const runner = client.chat.completions.runTools({ model: "painter", messages: paint, tools: [tool], stream: streamed });
  assert.equal(await runner.finalContent(), "Painted.");
}
assert.equal(picked, 2);

const Count = z.object({ count: z.number().int() });
const format = zodResponseFormat(Count, "count");
const parsed = await client.chat.completions.parse({ model: "counter", messages, response_format: format });
assert.deepEqual(parsed.choices[0].message.parsed, { count: 3 });

const missing = await fails(OpenAI.NotFoundError, () => client.chat.completions.create({ model: "nobody", messages }));
assert.deepEqual([missing.code, missing.param], ["model_not_found", "model"]);
const wrong = await fails(OpenAI.BadRequestError, () => client.chat.completions.create({ model: "greeter", messages: [] }));
assert.equal(wrong.param, "messages");
const stranger = new OpenAI({ baseURL: base, apiKey: "not-the-right-token" });
await fails(OpenAI.AuthenticationError, () => stranger.models.list());
const failed = await fails(OpenAI.InternalServerError, () => client.chat.completions.create({ model: "broken", messages }));
assert.match(failed.message, /out of order/);
const broken = await client.chat.completions.create({ model: "broken", messages, stream: true });
const error = await fails(OpenAI.APIError, async () => {
  for await (const _ of broken);
});
assert.match(error.message, /out of order/);
console.log("ok");
