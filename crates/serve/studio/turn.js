// A turn while it is streamed: the events of AG-UI become a view.
import { html, render, signal } from "./vendor/index.mjs";
import { post } from "./live.js";

/**
 * @typedef {{ kind: "text", id: string, text: string, markup: string }} TextPart
 * @typedef {{ kind: "thought", id: string, text: string }} ThoughtPart
 * @typedef {{ kind: "call", id: string, tool: string, args: string, result: string | null, note: string, since: number, took: number, parts: Part[], agent: string }} CallPart
 * @typedef {TextPart | ThoughtPart | CallPart} Part
 */

/** How often Markdown is rendered while text arrives, in milliseconds. */
const RENDER_PAUSE = 150;

export class LiveTurn {
  /**
   * @param {HTMLElement} place
   * @param {string} agent
   * @param {string} input
   * @param {string[]} files The names of the files that belong to the input.
   */
  constructor(place, agent, input, files) {
    this.agent = agent;
    this.input = input;
    this.files = files;
    /** @type {Part[]} */
    this.parts = [];
    /** @type {Map<string, Part[]>} Parts of agents that were called, by the id of their run. */
    this.nested = new Map();
    this.note = signal("");
    this.version = signal(0);
    this.frame = 0;
    this.isRendering = false;
    this.place = place;
    render(html`<${TurnView} turn=${this} />`, place);
  }

  /** Removes the turn from the page. */
  close() {
    render(null, this.place);
  }

  changed() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.version.value += 1;
    });
  }

  /**
   * @param {any} event
   * @returns {Part[]}
   */
  partsFor(event) {
    return this.nested.get(event.subagentRunId ?? "") ?? this.parts;
  }

  /** @param {any} event An event of AG-UI. */
  apply(event) {
    const parts = this.partsFor(event);
    const id = event.messageId ?? event.toolCallId ?? "";
    switch (event.type) {
      case "TEXT_MESSAGE_START":
        parts.push({ kind: "text", id, text: "", markup: "" });
        break;
      case "TEXT_MESSAGE_CONTENT": {
        const part = parts.findLast((part) => part.kind === "text" && part.id === id);
        if (part?.kind === "text") part.text += event.delta;
        void this.renderMarkdown();
        break;
      }
      case "REASONING_MESSAGE_START":
        parts.push({ kind: "thought", id, text: "" });
        break;
      case "REASONING_MESSAGE_CONTENT": {
        const part = parts.findLast((part) => part.kind === "thought" && part.id === id);
        if (part?.kind === "thought") part.text += event.delta;
        break;
      }
      case "TOOL_CALL_START": {
        const since = performance.now();
        const tool = event.toolCallName;
        parts.push({ kind: "call", id, tool, args: "", result: null, note: "", since, took: 0, parts: [], agent: "" });
        break;
      }
      case "TOOL_CALL_ARGS":
        this.withCall(id, (call) => (call.args += event.delta));
        break;
      case "TOOL_CALL_RESULT":
        this.withCall(event.toolCallId, (call) => {
          call.result = event.content;
          call.took = performance.now() - call.since;
        });
        break;
      case "ACTIVITY_SNAPSHOT":
        this.withCall(event.content?.toolCallId, (call) => (call.note = event.content.message));
        break;
      case "SUBAGENT_STARTED":
        this.withCall(event.parentToolCallId, (call) => {
          call.agent = event.name;
          this.nested.set(event.subagentRunId, call.parts);
        });
        break;
      case "CUSTOM":
        if (event.name === "patter.waiting") this.note.value = `${event.value.because}; retrying`;
        if (event.name === "patter.incomplete") this.note.value = event.value.message;
        break;
    }
    this.changed();
  }

  /**
   * @param {string} id
   * @param {(call: CallPart) => void} change
   */
  withCall(id, change) {
    for (const parts of [this.parts, ...this.nested.values()]) {
      const part = parts.findLast((part) => part.kind === "call" && part.id === id);
      if (part?.kind === "call") return change(part);
    }
  }

  /** Renders the last text as Markdown, on the server, not too often. */
  async renderMarkdown() {
    if (this.isRendering) return;
    this.isRendering = true;
    await new Promise((resolve) => window.setTimeout(resolve, RENDER_PAUSE));
    for (const parts of [this.parts, ...this.nested.values()]) {
      const part = parts.findLast((part) => part.kind === "text");
      if (part?.kind !== "text" || part.text.length > 200_000) continue;
      const response = await post("/studio/markdown", { text: part.text }).catch(() => null);
      if (response) part.markup = await response.text();
    }
    this.isRendering = false;
    this.changed();
  }
}

/** @param {{ turn: LiveTurn }} props */
function TurnView({ turn }) {
  void turn.version.value;
  return html`<article class="turn" aria-busy="true">
    ${(turn.input || turn.files.length > 0) && html`<div class="user">
      ${turn.files.length > 0 && html`<ul class="attachments">${turn.files.map((name) => html`<li><span class="chip">${name}</span></li>`)}</ul>`}
      ${turn.input && html`<div class="bubble">${turn.input}</div>`}
    </div>`}
    <div class="reply">
      <h3 class="who">${turn.agent}</h3>
      <${Parts} parts=${turn.parts} />
      <p class="quiet working">${turn.note.value || "Working…"}</p>
    </div>
  </article>`;
}

/** @param {{ parts: Part[] }} props */
function Parts({ parts }) {
  return parts.map((part) => {
    if (part.kind === "text") {
      if (!part.markup) return html`<div class="prose plain-text" key=${part.id}>${part.text}</div>`;
      // The markup comes from the server, which escaped everything.
      return html`<div key=${part.id} dangerouslySetInnerHTML=${{ __html: part.markup }}></div>`;
    }
    if (part.kind === "thought") {
      return html`<details class="thought" key=${part.id}><summary>Reasoning</summary><p>${part.text}</p></details>`;
    }
    return html`<${Call} call=${part} key=${part.id} />`;
  });
}

/** @param {{ call: CallPart }} props */
function Call({ call }) {
  const isDone = call.result !== null;
  return html`<details class="call" open=${call.agent !== ""}>
    <summary>
      <code>${call.tool}</code> <span class="digest">${call.args === "{}" ? "" : call.args.slice(0, 90)}</span>
      ${!isDone && html`<span class="state running">${call.note || "running"}</span>`}
      ${isDone && html`<span class="quiet">${Math.round(call.took)} ms</span>`}
    </summary>
    <dl><div><dt>Arguments</dt><dd><pre tabindex="0">${call.args}</pre></dd></div></dl>
    ${call.parts.length > 0 && html`<div class="nested"><h4 class="who">${call.agent}</h4><${Parts} parts=${call.parts} /></div>`}
    ${isDone && html`<dl><div><dt>Result</dt><dd><pre tabindex="0">${call.result}</pre></dd></div></dl>`}
  </details>`;
}
