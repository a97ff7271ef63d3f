// An MCP server that is unusual in every way that is allowed, and in some that are not.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const object = (properties, more) => ({ type: "object", properties, ...more });
const text = (text) => ({ content: [{ type: "text", text }] });
const number = { type: "number" };

const tools = [
  [
    { name: "strict", title: "Accepts one of two", inputSchema: object({ a: number, b: number }, {
      additionalProperties: false, oneOf: [{ required: ["a"] }, { required: ["b"] }] }) },
    { name: "say hello", description: "A name with a blank", inputSchema: object({}) },
    { name: "strict", description: "The same name again", inputSchema: object({}) },
    { name: "broken", description: "No schema", inputSchema: { type: "objekt" } },
    { name: "bare", inputSchema: object({}), outputSchema: { type: "object", properties: { x: { type: "nmber" } } } },
  ],
  [
    { name: "promise", description: "Declares structured results", inputSchema: object({ keep: { type: "string" } }),
      outputSchema: object({ n: number }, { required: ["n"] }) },
    { name: "fail", description: "Fails", inputSchema: object({ how: { type: "string" } }) },
    { name: "parts", description: "Many parts", inputSchema: object({ count: { type: "integer" } }) },
    { name: "tree", description: "Accepts a tree", inputSchema: { ...object({ root: { $ref: "#/$defs/Node" } }),
      $defs: { Node: object({ children: { type: "array", items: { $ref: "#/$defs/Node" } } }) } } },
    { name: "ask", description: "Asks the client", inputSchema: object({ method: { type: "string" } }),
      annotations: { readOnlyHint: true } },
    { name: "hang", description: "Never responds", inputSchema: object({}) },
    { name: "env", description: "Shows variables", inputSchema: object({}) },
    { name: "tell", description: "Returns the token", inputSchema: object({ times: { type: "integer" } }) },
    { name: "rename", description: "Renames a tool", inputSchema: object({}) },
  ],
];

const parts = [
  { type: "text", text: "one" },
  { type: "image", data: "AAAA", mimeType: "image/png" },
  { type: "audio", data: "AAA=", mimeType: "audio/wav" },
  { type: "resource", resource: { uri: "demo://blob", blob: "AAAAAAAA" } },
  { type: "resource", resource: { uri: "demo://text", mimeType: "text/plain", text: "x".repeat(70000) } },
  { type: "resource_link", uri: "demo://link", name: "link" },
  { type: "text", text: "x".repeat(1100000) },
];

let asked;
const calls = {
  strict: () => text("taken"),
  bare: () => text("free"),
  promise: ({ keep }) => keep === "text" ? text('{"n": 1}') : keep === "no" ? text("nothing") : keep === "large" ? { structuredContent: { n: 3, more: "x".repeat(1100000) }, content: [] } : { structuredContent: { n: 2 }, content: [] },
  fail: ({ how }) => ({ isError: true, content: how === "silently" ? [] : [{ type: "text", text: (how === "long" ? "x".repeat(4090) : "no more ") + process.env.TOKEN }] }),
  parts: ({ count }) => ({ content: parts.slice(0, count) }),
  tree: () => text("tree"),
  rename: () => {
    tools[0].find((tool) => tool.name === "bare").name = "bare2";
    send({ method: "notifications/tools/list_changed" });
    return text("renamed");
  },
  tell: ({ times }) => text(process.env.TOKEN.repeat(times)),
  env: () => text(Object.keys(process.env).sort().join(" ")),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, error } = JSON.parse(line);
  if (method === "initialize") {
    console.error("the token is " + process.env.TOKEN);
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "unusual", version: "1" } } });
  } else if (method === "tools/list") {
    const page = Number(params?.cursor ?? 0);
    const many = Array.from({ length: 30 }, (_, n) => ({ name: `t${30 * page + n}`, inputSchema: object({}) }));
    send({ id, result: process.env.ENDLESS ? { tools: many, nextCursor: String(page + 1) } : params?.cursor ? { tools: tools[1] } : { tools: tools[0], nextCursor: "1" } });
  } else if (method === "tools/call" && params.name === "ask") {
    asked = id;
    send({ id: "back", method: params.arguments.method, params: { message: "?", messages: [], maxTokens: 1, requestedSchema: object({}) } });
  } else if (method === "tools/call" && calls[params.name]) {
    send({ id, result: calls[params.name](params.arguments) });
  } else if (method === "tools/call" && params.name === "hang") {
    send({ method: "notifications/progress", params: { progressToken: params._meta.progressToken, progress: 1, message: process.env.TOKEN } });
  } else if (id === "back") {
    const { result } = JSON.parse(line);
    send({ id: asked, result: text(error ? "error " + error.code : result.roots ? JSON.stringify(result.roots) : result.action) });
  }
});
