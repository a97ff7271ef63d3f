// An experiment while it runs: each trial appears as soon as it has ended.
import { notify, post, request } from "./live.js";

/** @typedef {{ known: number, state: string, trials: { arm: string, case: string, passed: boolean }[] }} News */

const INTERVAL = 1000;
/** The longest pause between two attempts to reach the server, in milliseconds. */
const MAX_PAUSE = 15_000;

const place = /** @type {HTMLElement} */ (document.getElementById("experiment"));
const bar = /** @type {HTMLProgressElement} */ (document.getElementById("progress"));
const done = /** @type {HTMLElement} */ (document.getElementById("done"));
const stop = /** @type {HTMLButtonElement | null} */ (document.getElementById("stop"));
const id = encodeURIComponent(place.dataset.id ?? "");
let known = Number(place.dataset.known);

/** The cells, by case and arm. @type {Map<string, HTMLElement>} */
const cells = new Map();
for (const cell of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("[data-arm]"))) {
  cells.set(key(cell.dataset.case ?? "", cell.dataset.arm ?? ""), cell);
}

/** @param {string} name @param {string} arm */
function key(name, arm) {
  return `${arm}\n${name}`;
}

/** Counts a trial in a cell. @param {string} name @param {string} arm @param {boolean} isPassed */
function tally(name, arm, isPassed) {
  const cell = cells.get(key(name, arm));
  if (!cell) return;
  const all = Number(cell.dataset.all) + 1;
  const passed = Number(cell.dataset.passed) + (isPassed ? 1 : 0);
  cell.dataset.all = String(all);
  cell.dataset.passed = String(passed);
  cell.textContent = `${passed} of ${all}`;
  cell.className = passed === all ? "passed" : passed === 0 ? "failed" : "mixed";
}

/** @param {News} news */
function show(news) {
  known = news.known;
  for (const { arm, case: name, passed } of news.trials) {
    bar.value += 1;
    tally(name, arm, passed);
    tally("", arm, passed);
  }
  done.textContent = `${bar.value} of ${bar.max}`;
}

/** Reads what is new, again and again. */
async function follow() {
  let pause = INTERVAL;
  for (;;) {
    try {
      const response = await request(`/studio/experiments/${id}/progress?known=${known}`);
      const news = /** @type {News} */ (await response.json());
      show(news);
      if (news.state !== "running") return location.reload();
      pause = INTERVAL;
    } catch {
      pause = Math.min(2 * pause, MAX_PAUSE);
      done.textContent = "The server does not answer; trying again.";
    }
    await new Promise((resolve) => window.setTimeout(resolve, pause));
  }
}

stop?.addEventListener("click", async () => {
  stop.disabled = true;
  try {
    await post(`/studio/experiments/${id}/stop`, {});
  } catch (error) {
    stop.disabled = false;
    notify(String(error instanceof Error ? error.message : error));
  }
});

void follow();
