// An MCP server whose calls are tasks (the extension `io.modelcontextprotocol/tasks`).
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const tool = (name) => ({ name, description: "A task", inputSchema: { type: "object" } });
let polls = 0;

const task = (id, status, more) => ({
  taskId: id, status, createdAt: "2026-11-16T08:00:00Z", lastUpdatedAt: "2026-11-16T08:00:00Z", ttlMs: 60000,
  pollIntervalMs: 50, statusMessage: `poll ${polls}, ${process.env.TOKEN}`, ...more,
});

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const reply = (result) => send({ id, result });
  if (method === "initialize") {
    const supported = "io.modelcontextprotocol/tasks" in (params.capabilities.extensions ?? {});
    reply({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tasks", version: supported ? "1" : "0" } });
  } else if (method === "tools/list") {
    reply({ tools: ["done", "fails", "cancelled", "input", "other", "endless"].map(tool) });
  } else if (method === "tools/call") {
    reply({ resultType: "task", ...task(params.name, "working") });
  } else if (method === "tasks/cancel") {
    appendFileSync(process.env.LOG, `cancelled ${params.taskId}\n`);
    reply({ resultType: "complete" });
  } else if (method === "tasks/get") {
    polls++;
    const states = {
      done: () => task("done", polls < 3 ? "working" : "completed", { result: { content: [{ type: "text", text: `after ${polls} polls` }] } }),
      fails: () => task("fails", "failed", { error: { code: -32603, message: "no luck" } }),
      cancelled: () => task("cancelled", "cancelled"),
      input: () => task("input", "input_required", { inputRequests: {} }),
      other: () => task("done", "completed", { result: { content: [{ type: "text", text: "of another task" }] } }),
      endless: () => task("endless", "working"),
    };
    reply({ resultType: "complete", ...states[params.taskId]() });
  }
});
