// Server-sent events of a response, whatever the method of the request.

/**
 * @typedef {{ id: string, event: string, data: string }} ServerEvent
 */

/**
 * Reads the events of a response until it ends.
 * @param {Response} response
 * @returns {AsyncGenerator<ServerEvent>}
 */
export async function* readEvents(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event.data) yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/**
 * @param {string} block
 * @returns {ServerEvent}
 */
function parseEvent(block) {
  const event = { id: "", event: "message", data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trimStart();
    if (name === "id") event.id = value;
    else if (name === "event") event.event = value;
    else if (name === "data") event.data += value;
  }
  return event;
}

/** How long to wait before a connection is tried again, in milliseconds. */
const PAUSES = [300, 600, 1200, 2500, 5000];

/**
 * Follows the events of a session, and connects again when the connection breaks.
 * @param {object} options
 * @param {string} options.session
 * @param {number} options.entries How many entries of the log are known.
 * @param {() => void} options.onEvent
 * @param {(isOnline: boolean) => void} options.onConnection
 * @param {AbortSignal} options.signal
 */
export async function followSession({ session, entries, onEvent, onConnection, signal }) {
  let last = entries > 0 ? `${entries - 1}.999999` : "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      /** @type {Record<string, string>} */
      const headers = last ? { "Last-Event-ID": last } : {};
      const response = await fetch(`/api/sessions/${encodeURIComponent(session)}/events`, { headers, signal });
      if (response.status === 404) return;
      if (!response.ok) throw new Error(String(response.status));
      if (failures > 0) onEvent();
      failures = 0;
      onConnection(true);
      for await (const event of readEvents(response)) {
        if (event.id) last = event.id;
        onEvent();
      }
    } catch {
      if (signal.aborted) return;
    }
    failures += 1;
    onConnection(false);
    const pause = PAUSES[Math.min(failures, PAUSES.length) - 1] ?? 5000;
    await new Promise((resolve) => window.setTimeout(resolve, pause));
  }
}
