// A conversation: sending, streaming, stopping, approving, and following what others do in the same session.
import { handleApprovals } from "./approve.js";
import { Attachments, readSent } from "./attach.js";
import { notify, post, request } from "./live.js";
import { followSession, readEvents } from "./stream.js";
import { LiveTurn } from "./turn.js";

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
const element = (id) => /** @type {T} */ (document.getElementById(id));

const talk = element("talk");
const conversation = element("conversation");
const live = element("live");
const form = /** @type {HTMLFormElement} */ (element("compose"));
const message = /** @type {HTMLTextAreaElement} */ (element("message"));
const send = /** @type {HTMLButtonElement} */ (element("send"));
const stop = /** @type {HTMLButtonElement} */ (element("stop"));
const undo = /** @type {HTMLButtonElement} */ (element("undo"));
const status = element("status");
const agent = /** @type {HTMLSelectElement} */ (element("agent"));
const model = /** @type {HTMLInputElement | null} */ (document.getElementById("model"));

const variant = /** @type {HTMLSelectElement | null} */ (document.getElementById("variant"));

const attachments = new Attachments({
  place: talk,
  list: element("attachments"),
  picker: /** @type {HTMLInputElement} */ (element("files")),
  button: /** @type {HTMLButtonElement} */ (element("attach")),
  message,
});

const session = talk.dataset.session ?? "";
const path = encodeURIComponent(session);
let isNew = talk.dataset.new === "yes";
/** Whether this page receives the stream of a turn. */
let isStreaming = false;
let isOnline = true;
let isFollowing = false;
let refreshTimer = 0;

/** @returns {string} */
const activity = () => document.getElementById("turns")?.dataset.activity ?? "idle";

function showState() {
  const isBusy = isStreaming || activity() === "running";
  send.disabled = isBusy || activity() === "waiting" || activity() === "interrupted";
  stop.hidden = !isBusy && activity() !== "waiting";
  undo.hidden = isNew || isBusy || activity() !== "idle";
  const states = { running: "Working…", waiting: "Waiting for you", interrupted: "Interrupted" };
  const state = states[/** @type {keyof typeof states} */ (activity())] ?? "";
  status.textContent = isOnline ? (isStreaming ? "Working…" : state) : "Connection lost. Reconnecting…";
}

/** Shows the conversation as the server has it. Turns that are the same stay as they are. */
async function refresh() {
  const from = document.getElementById("turns")?.dataset.from;
  const query = from === undefined ? "" : `?from=${from}`;
  const response = await fetch(`/studio/talk/${path}/turns${query}`).catch(() => null);
  if (!response?.ok || isStreaming) return;
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  for (const turn of template.content.querySelectorAll(".turn")) {
    const shown = document.getElementById(turn.id);
    const isSame = shown && shown.dataset.version === /** @type {HTMLElement} */ (turn).dataset.version;
    if (isSame) turn.replaceWith(shown);
  }
  const isAtEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 120;
  conversation.replaceChildren(template.content);
  showState();
  if (isAtEnd) window.scrollTo({ top: document.body.scrollHeight });
}

function refreshSoon() {
  window.clearTimeout(refreshTimer);
  if (!isStreaming) refreshTimer = window.setTimeout(() => void refresh(), 120);
}

function follow() {
  if (isFollowing) return;
  isFollowing = true;
  const entries = Number(document.getElementById("turns")?.dataset.entries ?? talk.dataset.entries ?? 0);
  const onConnection = (/** @type {boolean} */ online) => {
    isOnline = online;
    showState();
  };
  const leaving = new AbortController();
  window.addEventListener("pagehide", () => leaving.abort());
  void followSession({ session, entries, onEvent: refreshSoon, onConnection, signal: leaving.signal });
}

/**
 * Runs a turn, and shows it while it is streamed.
 * @param {object} body
 * @param {string} input
 * @param {import("./attach.js").Attached[]} files
 */
async function run(body, input, files = []) {
  isStreaming = true;
  showState();
  document.querySelector(".hello")?.remove();
  const turn = new LiveTurn(live, agent.value, input, files.map((file) => file.name));
  live.scrollIntoView({ block: "end" });
  let failure = "";
  let isAccepted = false;
  try {
    const forwardedProps = { model: model?.value.trim() || undefined, tools: variant?.value || undefined };
    const options = { headers: { "X-Patter-On-Disconnect": "continue" } };
    const request = { threadId: session, runId: crypto.randomUUID(), tools: [], context: [], forwardedProps, ...body };
    const response = await post(`/agents/${encodeURIComponent(agent.value)}/ag-ui`, request, options);
    isAccepted = true;
    if (isNew) {
      isNew = false;
      history.replaceState(null, "", `/studio/talk/${path}`);
    }
    for await (const { data } of readEvents(response)) {
      const event = JSON.parse(data);
      if (event.type === "RUN_ERROR") failure = event.message;
      const isAtEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 120;
      turn.apply(event);
      if (isAtEnd) requestAnimationFrame(() => window.scrollTo({ top: document.body.scrollHeight }));
    }
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  isStreaming = false;
  await refresh();
  turn.close();
  if (failure && !isAccepted) {
    if (!message.value) message.value = input;
    attachments.restore(files);
    status.textContent = failure;
    notify(failure);
  }
  if (!isNew) follow();
  showState();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value.trim();
  if ((!text && attachments.isEmpty) || send.disabled || attachments.isReading) return;
  message.value = "";
  const files = attachments.take();
  const content = files.length === 0 ? text : [...files.map((file) => file.part), ...(text ? [{ type: "text", text }] : [])];
  void run({ messages: [{ id: crypto.randomUUID(), role: "user", content }] }, text, files);
});

message.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !stop.hidden) stop.click();
});

stop.addEventListener("click", () => void act("cancel"));

undo.addEventListener("click", async () => {
  undo.disabled = true;
  try {
    // Afterwards, the session does not have the files any more.
    const files = await readSent(conversation.querySelector(".turn:last-of-type"));
    const response = await request(`/api/sessions/${path}/undo`, { method: "POST" });
    const { message: text } = await response.json();
    await refresh();
    if (!message.value && attachments.isEmpty) {
      message.value = text ?? "";
      await attachments.add(files);
    }
  } catch (error) {
    notify(error instanceof Error ? error.message : String(error));
  }
  undo.disabled = false;
  message.focus();
});

/** @param {string} action */
async function act(action) {
  await request(`/api/sessions/${path}/${action}`, { method: "POST" }).catch((error) => notify(error.message));
  await refresh();
  follow();
}

conversation.addEventListener("click", (event) => {
  const button = event.target instanceof HTMLElement ? event.target.closest("[data-action]") : null;
  if (button instanceof HTMLElement && button.dataset.action) void act(button.dataset.action);
});

handleApprovals(conversation, async ({ interrupt, result, tool, approved, reason, answer }) => {
  if (answer !== undefined) {
    const toolCalls = [{ id: result, type: "function", function: { name: tool, arguments: "{}" } }];
    const asked = { id: crypto.randomUUID(), role: "assistant", content: "", toolCalls };
    const answered = { id: crypto.randomUUID(), role: "tool", toolCallId: result, content: answer };
    await run({ messages: [asked, answered] }, "");
    return;
  }
  const payload = approved ? { approved } : { approved, reason: reason || undefined };
  const resume = [{ interruptId: interrupt, status: "resolved", payload }];
  await run({ messages: [], resume }, "");
});

agent.addEventListener("change", () => {
  if (isNew) location.href = `/studio/talk?agent=${encodeURIComponent(agent.value)}`;
});

if (!isNew) follow();
showState();
message.focus({ preventScroll: true });
if (!isNew && !location.hash) window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
