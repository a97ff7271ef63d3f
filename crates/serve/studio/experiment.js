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
const planned = Number(place.dataset.planned);
let known = 0;
let count = 0;

/** The cells by what they count, with how many trials passed. @type {Map<string, { cell: HTMLElement, passed: number, all: number }>} */
const tallies = new Map();
for (const cell of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("[data-arm], [data-total]"))) {
  const { arm, total } = cell.dataset;
  tallies.set(key(cell.dataset.case ?? "", arm ?? total ?? ""), { cell, passed: 0, all: 0 });
}

/** @param {string} name @param {string} arm */
function key(name, arm) {
  return `${arm}\n${name}`;
}

/** Counts a trial in a cell. @param {string} name @param {string} arm @param {boolean} passed */
function tally(name, arm, passed) {
  const found = tallies.get(key(name, arm));
  if (!found) return;
  found.all += 1;
  found.passed += passed ? 1 : 0;
  const isOne = name !== "" && place.dataset.repeats === "1";
  found.cell.textContent = isOne ? (passed ? "✓ passed" : "✗ failed") : `${found.passed} of ${found.all}`;
  found.cell.className = found.passed === found.all ? "passed" : found.passed === 0 ? "failed" : "mixed";
}

/** @param {News} news */
function show(news) {
  known = news.known;
  for (const { arm, case: name, passed } of news.trials) {
    count += 1;
    tally(name, arm, passed);
    tally("", arm, passed);
  }
  bar.value = count;
  done.textContent = `${count} of ${planned}`;
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
