// The map: moving and zooming by pointer and keyboard, and finding what is in it.
export {};

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/** @typedef {{ element: Element, box: Box, name: string, data: DOMStringMap, isTool: boolean, isAgent: boolean, hasProblem: boolean }} Item */
/** @typedef {{ element: Element, from: number, to: number, permission: string | undefined, calls: boolean }} Line */

const map = /** @type {HTMLElement} */ (document.getElementById("map"));
const svg = /** @type {SVGSVGElement} */ (map?.querySelector("svg"));
const form = /** @type {HTMLFormElement} */ (document.getElementById("filters"));
const found = /** @type {HTMLOutputElement} */ (document.getElementById("found"));

const whole = { x: 0, y: 0, width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
/** The part that is shown. @type {Box} */
let box = { ...whole };

/** Shows a part of the drawing. @param {Box} next */
function show(next) {
  const width = Math.min(Math.max(next.width, 120), Math.max(whole.width, map.clientWidth) * 1.5);
  const height = width * (map.clientHeight / map.clientWidth);
  // Something of the drawing stays in sight.
  const x = Math.min(Math.max(next.x, 40 - width), whole.width - 40);
  const y = Math.min(Math.max(next.y, 40 - height), whole.height - 40);
  box = { x, y, width, height };
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  drawAround(y - height / 2, y + height * 1.5);
}

/** Zooms by a factor, and keeps a point of the window where it is. @param {number} factor @param {number} [px] @param {number} [py] */
function zoom(factor, px = 0.5, py = 0.5) {
  const width = box.width * factor;
  const height = box.height * factor;
  show({ x: box.x + (box.width - width) * px, y: box.y + (box.height - height) * py, width, height });
}

/** Makes the window as high as the drawing needs, up to a part of the screen. */
function size() {
  const needed = (whole.height * map.clientWidth) / Math.min(Math.max(whole.width, map.clientWidth), map.clientWidth * 1.6);
  map.style.height = `${Math.round(Math.min(Math.max(needed, 220), Math.max(innerHeight * 0.72, 320)))}px`;
}

/** Shows everything, as long as names can be read; else the start. */
function fit() {
  const shape = map.clientWidth / map.clientHeight;
  const all = Math.max(whole.width, whole.height * shape);
  const readable = Math.min(all, Math.max(map.clientWidth * 1.6, Math.min(whole.width, map.clientWidth * 2)));
  // A small drawing on a large screen is not enlarged.
  const width = Math.max(readable, map.clientWidth);
  const fitsX = width >= whole.width;
  const fitsY = width / shape >= whole.height;
  show({ x: fitsX ? (whole.width - width) / 2 : 0, y: fitsY ? (whole.height - width / shape) / 2 : 0, width, height: 0 });
}

/** Moves a node into the middle. @param {Box} place */
function reveal({ x, y, width, height }) {
  const isSeen = x >= box.x && y >= box.y && x + width <= box.x + box.width && y + height <= box.y + box.height;
  if (!isSeen) show({ ...box, x: x + width / 2 - box.width / 2, y: y + height / 2 - box.height / 2 });
}

/** @type {Map<number, PointerEvent>} */
const pointers = new Map();
let moved = 0;

map.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, event);
  moved = 0;
});
map.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const scale = box.width / map.clientWidth;
  const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
  const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
  pointers.set(event.pointerId, event);
  moved += Math.abs(dx) + Math.abs(dy);
  if (moved < 5) return;
  if (!map.hasPointerCapture(event.pointerId)) map.setPointerCapture(event.pointerId);
  map.classList.add("dragging");
  if (other) {
    const distance = (/** @type {PointerEvent} */ one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    zoom(distance(before) / Math.max(distance(event), 1));
  } else {
    show({ ...box, x: box.x - dx * scale, y: box.y - dy * scale });
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  map.addEventListener(name, (event) => {
    pointers.delete(/** @type {PointerEvent} */ (event).pointerId);
    map.classList.remove("dragging");
    // The click that follows is part of the movement; later ones are not.
    setTimeout(() => (moved = 0));
  });
}
// The end of a movement is not a click on what happens to be there.
map.addEventListener("click", (event) => moved >= 5 && event.detail > 0 && event.preventDefault(), true);
map.addEventListener("wheel", (event) => {
  // Without a key the page scrolls, as everywhere.
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
  event.preventDefault();
  const area = map.getBoundingClientRect();
  const delta = event.deltaY || event.deltaX;
  zoom(Math.exp(delta / 400), (event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height);
}, { passive: false });
map.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = box.width / 8;
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowLeft: () => show({ ...box, x: box.x - step }),
    ArrowRight: () => show({ ...box, x: box.x + step }),
    ArrowUp: () => show({ ...box, y: box.y - step }),
    ArrowDown: () => show({ ...box, y: box.y + step }),
    "+": () => zoom(0.8),
    "=": () => zoom(0.8),
    "-": () => zoom(1.25),
    0: fit,
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
map.addEventListener("focusin", (event) => {
  const link = /** @type {Element} */ (event.target).closest("a");
  // The browser scrolls to what has the focus; the map moves instead.
  map.scrollTo(0, 0);
  const node = link && moved < 5 ? nodes()[Number(link.dataset.node)] : null;
  if (node) reveal(node.box);
});

/** Returns where a node is, also if it is not drawn. @param {Element} element @returns {Box} */
function place(element) {
  const rect = element.querySelector("rect");
  const number = (/** @type {string} */ name) => Number(rect?.getAttribute(name));
  return { x: number("x"), y: number("y"), width: number("width"), height: number("height") };
}

/** The nodes of the drawing, by number. They are read when they are first needed, since large drawings have many. @type {() => Item[]} */
const nodes = once(() => {
  /** @type {Item[]} */
  const items = [];
  for (const element of svg.querySelectorAll(".node")) {
    const { classList, dataset } = /** @type {SVGElement} */ (element);
    items[Number(dataset.node)] = {
      element,
      box: place(element),
      name: (dataset.name ?? "").toLowerCase(),
      data: dataset,
      isTool: classList.contains("tool"),
      isAgent: classList.contains("agent") || classList.contains("delegate"),
      hasProblem: classList.contains("problem"),
    };
  }
  return items;
});
/** @type {() => Line[]} */
const lines = once(() => [...svg.querySelectorAll(".edges .edge")].map((element) => {
  const { dataset, classList } = /** @type {SVGElement} */ (element);
  const calls = classList.contains("calls") || classList.contains("delegates_to");
  return { element, from: Number(dataset.from), to: Number(dataset.to), permission: dataset.permission, calls };
}));

/** Returns a function that computes a value when it is first called. @template T @param {() => T} compute @returns {() => T} */
function once(compute) {
  /** @type {{ value: T } | undefined} */
  let computed;
  return () => (computed ??= { value: compute() }).value;
}

/** The groups of a large drawing, and the bands in which what they contain starts and ends. */
const groups = [...svg.querySelectorAll("[data-bands]")].map((element) => {
  const [top = 0, bottom = 0] = (/** @type {SVGElement} */ (element).dataset.bands ?? "").split(" ").map(Number);
  return { element, top, bottom };
});

/** Draws what starts or ends between two heights, and nothing else of a large drawing. @param {number} top @param {number} bottom */
function drawAround(top, bottom) {
  const height = Number(svg.dataset.band);
  const isShown = (/** @type {number} */ band) => (band + 1) * height > top && band * height < bottom;
  for (const group of groups) group.element.classList.toggle("far", !isShown(group.top) && !isShown(group.bottom));
}

/** @type {Item[]} */
let hits = [];
let current = 0;
/** What the query finds, if there is one: the numbers of nodes. @type {Set<number> | null} */
let asked = null;
/** Why the query finds nothing. */
let problem = "";

/** Shows what matches all filters, and dims the rest. */
function filter() {
  const all = nodes();
  const values = new FormData(/** @type {HTMLFormElement} */ (form));
  const value = (/** @type {string} */ name) => String(values.get(name) ?? "");
  const [name, effect, permission, layer, model] = [value("name").trim().toLowerCase(), value("effect"), value("permission"), value("layer"), value("model")];
  const onlyProblems = values.has("problems");
  const isActive = name || effect || permission || layer || model || onlyProblems || asked;
  const fits = (/** @type {Item | undefined} */ item) =>
    !!item &&
    (!effect || !item.isTool || item.data.effect === effect) &&
    (!layer || !item.isTool || item.data.layer === layer) &&
    (!model || !item.isAgent || item.data.model === model);
  // What a filter is about: tools, agents, or calls, with what is at their other end.
  const isLinked = effect || layer || permission || model;
  const linked = new Set();
  for (const { from, to, permission: decision, calls } of isLinked ? lines() : []) {
    const isTool = !!all[to]?.isTool;
    if (calls && fits(all[from]) && fits(all[to]) && (!permission || decision === permission) && (isTool || !(effect || layer))) {
      linked.add(from).add(to);
    }
  }
  if (!permission && !model) {
    all.forEach((item, index) => item.isTool && isLinked && fits(item) && linked.add(index));
  }
  const direct = new Set();
  all.forEach((item, index) => {
    if ((!isLinked || linked.has(index)) && item.name.includes(name) && (!onlyProblems || item.hasProblem) && (!asked || asked.has(index))) direct.add(index);
  });
  // What was searched for is shown with its neighbours.
  const lit = new Set(direct);
  const isSearch = name || onlyProblems;
  for (const { from, to } of isSearch ? lines() : []) {
    if (direct.has(from) && (!isLinked || linked.has(to))) lit.add(to);
    if (direct.has(to) && (!isLinked || linked.has(from))) lit.add(from);
  }
  all.forEach((item, index) => {
    item.element.classList.toggle("dim", !!isActive && !lit.has(index));
    item.element.classList.toggle("hit", (!!isSearch || !!asked) && direct.has(index));
  });
  for (const { element, from, to, permission: decision } of lines()) {
    const isLit = lit.has(from) && lit.has(to) && (!isSearch || direct.has(from) || direct.has(to)) && (!permission || decision === permission);
    element.classList.toggle("dim", !!isActive && !isLit);
  }
  hits = isActive ? all.filter((_, index) => direct.has(index)): [];
  current = 0;
  found.textContent = problem || (isActive ? `${hits.length} of ${all.length}` : "");
  if ((isSearch || asked) && hits[0]) reveal(hits[0].box);
}

let asking = new AbortController();
let askTimer = 0;

/** Asks the server what a query finds, and highlights it. @param {string} query */
async function ask(query) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  if (!query) {
    asked = null;
    problem = "";
    filter();
    return;
  }
  const response = await fetch(`/studio/query?q=${encodeURIComponent(query)}`, { signal }).catch(() => null);
  if (signal.aborted) return;
  /** @type {{ nodes: number[], error: string | null, hint: string | null }} */
  const answer = response?.ok ? await response.json() : { nodes: [], error: "The server does not answer", hint: null };
  if (signal.aborted) return;
  problem = answer.error ? [answer.error, answer.hint].filter(Boolean).join(": ") : "";
  asked = answer.error ? null : new Set(answer.nodes);
  filter();
}

let waiting = 0;
form.addEventListener("input", (event) => {
  const field = event.target;
  if (field instanceof HTMLInputElement && field.name === "query") {
    // A query is asked once nobody types any more.
    clearTimeout(askTimer);
    askTimer = window.setTimeout(() => void ask(field.value.trim()), 250);
    return;
  }
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(filter);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  // Enter goes from one to the next.
  const hit = hits[current % Math.max(hits.length, 1)];
  current += 1;
  if (hit) reveal(hit.box);
  const link = hit?.element.closest("a");
  if (link && hits.length === 1) link.focus();
});
form.addEventListener("click", (event) => {
  const way = /** @type {HTMLElement} */ (event.target).dataset.zoom;
  if (way === "fit") fit();
  else if (way) zoom(way === "in" ? 0.8 : 1.25);
});

form.hidden = false;
map.classList.add("live");
size();
fit();
new ResizeObserver(() => show(box)).observe(map);
