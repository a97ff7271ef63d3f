// Editing a file: findings while typing, what the change means before it is saved, and a way out if the file changed.
export {};

/** @typedef {{ severity: string, code: string, message: string, hint?: string, place?: string, line?: number, column?: number, start?: number, end?: number }} Finding */
/** @typedef {{ judgement: string, text: string, texts: [string, string] | null }} Change */
/** @typedef {{ findings: Finding[], changes: Change[], same: boolean }} Checked */

/** @template {HTMLElement} E @param {string} id @returns {E} */
const get = (id) => /** @type {E} */ (document.getElementById(id));
const form = get("edit");
const text = /** @type {HTMLTextAreaElement} */ (get("text"));
const numbers = get("numbers");
const state = get("state");
const save = /** @type {HTMLButtonElement} */ (get("save"));
const dialog = /** @type {HTMLDialogElement} */ (get("review"));
const address = form.dataset.address ?? "";

/** The text as it is on disk, as far as the page knows, and its hash. */
let saved = text.value;
let hash = form.dataset.hash ?? "";
/** The text of the file if it changed on disk. @type {string | undefined} */
let theirs;
/** @type {Checked} */
let checked = { findings: [], changes: [], same: true };

/** Creates an element. @param {string} name @param {string} content @param {string} [className] */
function element(name, content, className = "") {
  const made = document.createElement(name);
  made.textContent = content;
  made.className = className;
  return made;
}

/** Sends JSON to the server. @param {string} path @param {object} body @param {AbortSignal} [signal] */
function post(path, body, signal) {
  return fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: signal ?? null });
}

/** @param {Response} response */
async function problem(response) {
  const body = await response.json().catch(() => null);
  return body?.error?.message ?? `the server answered ${response.status}`;
}

function showNumbers() {
  const count = text.value.split("\n").length;
  /** @type {Map<number, string>} */
  const marks = new Map();
  for (const { line, severity } of checked.findings) {
    if (line && marks.get(line) !== "error") marks.set(line, severity);
  }
  const all = Array.from({ length: count }, (_, index) => {
    const mark = marks.get(index + 1);
    return mark ? element("span", `${mark === "error" ? "✕" : "!"} ${index + 1}\n`, mark) : `${index + 1}\n`;
  });
  numbers.replaceChildren(...all);
  numbers.scrollTop = text.scrollTop;
}

/** @param {Finding} finding */
function showFinding(finding) {
  const item = element("li", "", `finding ${finding.severity}`);
  const place = finding.place ?? `line ${finding.line}`;
  const button = element("button", "");
  button.append(element("b", `${finding.severity} ${finding.code}`), ` ${place}: ${finding.message}`);
  if (finding.hint) button.append(element("span", ` ${finding.hint}`, "quiet"));
  /** @type {HTMLButtonElement} */ (button).type = "button";
  button.addEventListener("click", () => select(finding));
  item.append(button);
  return item;
}

/** Selects the text that a finding is about. @param {Finding} finding */
function select({ start, end, line }) {
  if (start === undefined || end === undefined) return;
  text.focus();
  text.setSelectionRange(start, Math.max(end, start));
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, ((line ?? 1) - 4) * height);
}

/** @param {Change} change */
function showChange({ judgement, text: words, texts }) {
  const item = element("li", "", judgement);
  item.append(element("b", judgement), ` ${words}`);
  if (texts) {
    const details = document.createElement("details");
    details.append(element("summary", "old and new text"), element("pre", `− ${texts[0]}`), element("pre", `+ ${texts[1]}`));
    item.append(details);
  }
  return item;
}

function showChecked() {
  const { findings, changes, same } = checked;
  const none = (/** @type {string} */ words) => [element("li", words, "quiet")];
  get("findings").replaceChildren(...(findings.length ? findings.map(showFinding) : none("No problems found.")));
  const nothing = same ? "The text is as it is on disk." : "Nothing that matters: only layout or comments.";
  const lists = [get("changes"), get("review-changes")];
  lists.forEach((list) => list.replaceChildren(...(changes.length ? changes.map(showChange) : none(nothing))));
  showNumbers();
}

let timer = 0;
/** @type {AbortController | undefined} */
let running;

/** Checks the text as it is now. */
async function check() {
  running?.abort();
  const own = (running = new AbortController());
  state.textContent = "checking…";
  try {
    const response = await post(`${address}/check`, { text: text.value }, own.signal);
    if (!response.ok) throw new Error(await problem(response));
    checked = await response.json();
    showChecked();
    const errors = checked.findings.filter(({ severity }) => severity === "error").length;
    state.textContent = errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : isChanged() ? "not saved" : "";
  } catch (error) {
    if (own.signal.aborted) return;
    state.textContent = `Not checked: ${error instanceof Error ? error.message : error}`;
  }
}

const isChanged = () => text.value !== saved || theirs !== undefined;

function typed() {
  save.disabled = !isChanged();
  showNumbers();
  clearTimeout(timer);
  timer = setTimeout(check, 250);
}

/** Shows what would change, and asks. */
async function review() {
  clearTimeout(timer);
  await check();
  const errors = checked.findings.filter(({ severity }) => severity === "error").length;
  const warning = errors ? `It has ${errors} ${errors === 1 ? "error" : "errors"}, so agents in it may not run.` : "This is what changes:";
  const changed = "Someone else changed the file on disk. Saving yours replaces that; compared with it, this changes:";
  get("review-title").textContent = theirs === undefined ? "Save the file?" : "The file changed on disk";
  get("review-note").textContent = theirs === undefined ? warning : changed;
  get("confirm").textContent = theirs === undefined ? "Save" : "Replace it with mine";
  get("reload").hidden = theirs === undefined;
  if (!dialog.open) dialog.showModal();
}

async function confirm() {
  dialog.close();
  state.textContent = "saving…";
  try {
    const value = text.value;
    const response = await post(address, { text: value, hash });
    if (response.status === 409) {
      const now = await response.json();
      [theirs, hash] = [now.text, now.hash];
      state.textContent = "Not saved: the file changed on disk";
      await review();
      return;
    }
    if (!response.ok) throw new Error(await problem(response));
    const done = await response.json();
    [saved, hash, theirs] = [value, done.hash, undefined];
    save.disabled = !isChanged();
    await check();
    state.textContent = done.note;
  } catch (error) {
    state.textContent = `Not saved: ${error instanceof Error ? error.message : error}`;
  }
}

text.addEventListener("input", typed);
text.addEventListener("scroll", () => (numbers.scrollTop = text.scrollTop));
text.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") {
    event.preventDefault();
    if (isChanged()) void review();
  }
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void review();
});
get("confirm").addEventListener("click", () => void confirm());
get("cancel").addEventListener("click", () => dialog.close());
get("reload").addEventListener("click", () => {
  dialog.close();
  text.value = saved = theirs ?? saved;
  theirs = undefined;
  typed();
});
addEventListener("beforeunload", (event) => isChanged() && event.preventDefault());

const line = Number(location.hash.replace("#L", ""));
showNumbers();
if (line > 1) {
  const start = text.value.split("\n").slice(0, line - 1).join("\n").length + 1;
  text.setSelectionRange(start, start);
  text.scrollTop = (line - 3) * parseFloat(getComputedStyle(text).lineHeight);
}
void check();
