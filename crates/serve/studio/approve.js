// Decisions about calls that wait.
import { notify, post } from "./live.js";

/**
 * @typedef {object} Decision
 * @property {string} session
 * @property {string[]} run
 * @property {string} call
 * @property {string} hash
 * @property {string} interrupt
 * @property {boolean} approved
 * @property {string} reason
 */

/**
 * Reads the decision of a form.
 * @param {HTMLFormElement} form
 * @param {boolean} approved
 * @returns {Decision}
 */
function readDecision(form, approved) {
  const { session = "", run = "[]", call = "", hash = "", interrupt = "" } = form.dataset;
  const reason = String(new FormData(form).get("reason") ?? "").trim();
  return { session, run: JSON.parse(run), call, hash, interrupt, approved, reason };
}

/**
 * Sends a decision. The run continues on the server.
 * @param {Decision} decision
 */
export function sendDecision({ session, run, call, hash, approved, reason }) {
  const decision = approved ? { decision: "approve" } : { decision: "refuse", reason: reason || undefined };
  return post(`/api/sessions/${encodeURIComponent(session)}/answers`, { run, call_id: call, hash, ...decision });
}

/**
 * Handles the forms inside of an element.
 * @param {HTMLElement} place
 * @param {(decision: Decision, form: HTMLFormElement) => Promise<void>} decide
 */
export function handleApprovals(place, decide) {
  place.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.classList.contains("approval")) return;
    event.preventDefault();
    const button = /** @type {SubmitEvent} */ (event).submitter;
    const approved = button instanceof HTMLButtonElement && button.value === "approve";
    const buttons = form.querySelectorAll("button");
    buttons.forEach((button) => (button.disabled = true));
    decide(readDecision(form, approved), form).catch((error) => {
      buttons.forEach((button) => (button.disabled = false));
      notify(error.message);
    });
  });
}
