// An MCP server with the tools that a variable describes. Each returns its name.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "listed", version: "1" } } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: JSON.parse(process.env.TOOLS) } });
  } else if (method === "tools/call") {
    send({ id, result: { content: [{ type: "text", text: params.name }] } });
  }
});
