// The timeline of a session: at most 200 rows are in the page, others are read when they are needed.
import { notify, post, request } from "./live.js";

/**
 * @typedef {object} Row
 * @property {number} number
 * @property {string} kind
 * @property {number} depth
 * @property {string} name
 * @property {string} text
 * @property {number} start
 * @property {number} took
 * @property {string} [tokens]
 * @property {string} [cost]
 * @property {boolean} [failed]
 */

const HEIGHT = 30;
/** How many rows are in the page at most. */
const LIVE = 160;
/** How many rows are read at a time. */
const PAGE = 200;
/** How many pages are kept. */
const MAX_PAGES = 20;
const SVG = "http://www.w3.org/2000/svg";

const place = /** @type {HTMLElement} */ (document.getElementById("session"));
const rows = document.getElementById("rows");
const list = /** @type {HTMLOListElement | null} */ (document.getElementById("window"));
const detail = document.getElementById("detail");
const session = place.dataset.session ?? "";
const path = `/studio/sessions/${encodeURIComponent(session)}`;
let total = Number(place.dataset.total ?? 0);
let span = Number(place.dataset.span ?? 1);
let selected = -1;
/** @type {Map<number, Row[] | Promise<Row[]>>} */
const pages = new Map();
let shownFrom = -1;
let shownTo = -1;

/**
 * Reads a page of rows, or returns it if it is known.
 * @param {number} page
 */
function readPage(page) {
  const known = pages.get(page);
  if (known) return known;
  const reading = request(`${path}/rows?from=${page * PAGE}&count=${PAGE}`).then(async (response) => {
    const answer = await response.json();
    total = answer.total;
    span = answer.span;
    pages.set(page, answer.rows);
    while (pages.size > MAX_PAGES) pages.delete(/** @type {number} */ (pages.keys().next().value));
    return /** @type {Row[]} */ (answer.rows);
  });
  pages.set(page, reading);
  reading.catch(() => pages.delete(page));
  return reading;
}

/** @param {number} ms */
function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 100) / 10} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/**
 * @param {string} name
 * @param {string} text
 */
function cell(name, text) {
  const cell = document.createElement("span");
  cell.className = name;
  cell.textContent = text;
  return cell;
}

/** @param {Row} row */
function renderRow(row) {
  const item = document.createElement("li");
  item.className = `row ${row.kind}${row.failed ? " failed" : ""}`;
  item.id = String(row.number);
  const link = document.createElement("a");
  link.href = `${path}/entries/${row.number}`;
  if (row.number === selected) link.setAttribute("aria-current", "true");
  const name = cell(`name depth-${Math.min(row.depth, 6)}`, "");
  const title = document.createElement("b");
  title.textContent = row.name;
  name.append(title, ` ${row.text}`);
  const bar = document.createElementNS(SVG, "svg");
  bar.setAttribute("class", "bar-track");
  bar.setAttribute("viewBox", "0 0 100 10");
  bar.setAttribute("preserveAspectRatio", "none");
  bar.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(SVG, "rect");
  const start = Math.min((row.start / span) * 100, 99.6);
  const width = Math.min(Math.max((row.took / span) * 100, 0.4), 100 - start);
  for (const [key, value] of Object.entries({ x: start, y: 2, width, height: 6 })) rect.setAttribute(key, String(value));
  bar.append(rect);
  link.append(cell("num", String(row.number)), name, bar);
  link.append(cell("n", row.tokens ?? ""), cell("n", row.cost ?? ""), cell("n", row.took > 0 ? duration(row.took) : ""));
  item.append(link);
  return item;
}

/** Shows the rows that are in view, and some around them. */
async function show() {
  if (!rows || !list) return;
  const inView = Math.ceil(rows.clientHeight / HEIGHT);
  const margin = Math.floor((LIVE - inView) / 2);
  const first = Math.floor(rows.scrollTop / HEIGHT);
  if (first - 10 >= shownFrom && first + inView + 10 <= shownTo) return;
  const from = Math.max(0, first - margin);
  const to = Math.min(total, from + LIVE);
  if (from === shownFrom && to === shownTo) return;
  shownFrom = from;
  shownTo = to;
  const wanted = [];
  for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) wanted.push(readPage(page));
  const read = (await Promise.all(wanted).catch((error) => (notify(error.message), []))).flat();
  if (from !== shownFrom || to !== shownTo) return;
  const base = Math.floor(from / PAGE) * PAGE;
  const focused = document.activeElement?.closest(".row")?.id;
  list.replaceChildren(...read.slice(from - base, to - base).map(renderRow));
  list.start = from;
  list.style.paddingTop = `${from * HEIGHT}px`;
  list.style.height = `${total * HEIGHT}px`;
  if (focused) document.getElementById(focused)?.querySelector("a")?.focus({ preventScroll: true });
}

/**
 * Shows an entry beside the list.
 * @param {number} number
 * @param {boolean} [scrolls]
 */
async function select(number, scrolls) {
  if (!rows || !detail || number < 0 || number >= total) return;
  selected = number;
  if (scrolls) {
    rows.scrollTop = Math.max(0, number * HEIGHT - rows.clientHeight / 2);
    await show();
  }
  for (const link of rows.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  document.getElementById(String(number))?.querySelector("a")?.setAttribute("aria-current", "true");
  const response = await request(`${path}/entries/${number}?part=true`).catch((error) => notify(error.message));
  if (response && selected === number) detail.innerHTML = await response.text();
}

/** @param {number} step */
async function move(step) {
  const number = Math.min(Math.max(selected + step, 0), total - 1);
  history.replaceState(null, "", `#${number}`);
  if (rows) {
    const top = number * HEIGHT;
    if (top < rows.scrollTop) rows.scrollTop = top;
    if (top + HEIGHT > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + HEIGHT - rows.clientHeight;
  }
  await show();
  document.getElementById(String(number))?.querySelector("a")?.focus({ preventScroll: true });
  await select(number);
}

/** @param {HTMLElement} button */
async function act(button) {
  const api = `/api/sessions/${encodeURIComponent(session)}`;
  const action = button.dataset.action;
  if (action === "fork") {
    const response = await post(`${api}/fork`, { messages: Number(button.dataset.messages) });
    const { id } = await response.json();
    location.href = `/studio/talk/${encodeURIComponent(id)}`;
  } else if (action === "delete") {
    if (!window.confirm("Delete this session? It cannot be restored.")) return;
    await request(api, { method: "DELETE" });
    location.href = "/studio/sessions";
  } else if (action === "resume") {
    await request(`${api}/resume`, { method: "POST" });
    location.href = `/studio/talk/${encodeURIComponent(session)}`;
  } else if (action) {
    await request(`${api}/${action}`, { method: "POST" });
    location.reload();
  }
}

place.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = target?.closest("button[data-action]");
  if (button instanceof HTMLElement) return void act(button).catch((error) => notify(error.message));
  const row = target?.closest(".row");
  if (!row || !detail || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.replaceState(null, "", `#${row.id}`);
  void select(Number(row.id));
});

rows?.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -total, End: total };
  const step = steps[/** @type {keyof typeof steps} */ (event.key)];
  if (step === undefined) return;
  event.preventDefault();
  void move(step);
});

if (rows) {
  rows.addEventListener("scroll", () => void show(), { passive: true });
  window.addEventListener("resize", () => void show());
  document.querySelector(".more")?.remove();
  const openHash = () => {
    const number = Number.parseInt(location.hash.slice(1), 10);
    if (Number.isInteger(number)) void select(number, true);
  };
  window.addEventListener("hashchange", openHash);
  void show().then(openHash);
}
