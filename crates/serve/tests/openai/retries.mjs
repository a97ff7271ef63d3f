// Sends requests that the SDK sends again, because it gives up or the connection breaks.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [base, token, packages, kind, route] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(createRequire(`${packages}/`).resolve("openai")));
const [timeout, maxRetries] = { broken: [20000, 2], impatient: [400, 4], hopeless: [200, 0] }[kind];
const client = new OpenAI({ baseURL: base, apiKey: token, timeout, maxRetries });

const ask = async (stream) => {
  if (route === "chat") {
    const messages = [{ role: "user", content: `Go ${stream}` }];
    const reply = await client.chat.completions.create({ model: "slow", messages, stream });
    if (!stream) return reply.choices[0].message.content;
    let text = "";
    for await (const chunk of reply) text += chunk.choices[0]?.delta.content ?? "";
    return text;
  }
  const reply = await client.responses.create({ model: "slow", input: `Go ${stream}`, stream });
  if (!stream) return reply.output_text;
  let text = "";
  for await (const event of reply) if (event.type === "response.output_text.delta") text += event.delta;
  return text;
};

try {
  assert.equal(await ask(false), "Late.");
  assert.notEqual(kind, "hopeless");
} catch (error) {
  if (!(error instanceof OpenAI.APIConnectionTimeoutError) || kind !== "hopeless") throw error;
}
if (kind === "broken") assert.equal(await ask(true), "Late.");
console.log("ok");
