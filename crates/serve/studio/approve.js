// Decisions about calls that wait, and answers to questions.
import { notify, post } from "./live.js";

/**
 * @typedef {object} Decision
 * @property {string} session
 * @property {string[]} run
 * @property {string} call
 * @property {string} hash
 * @property {string} interrupt
 * @property {string} result
 * @property {string} tool
 * @property {boolean} approved
 * @property {string} reason
 * @property {string | undefined} answer
 */

/**
 * Reads the decision of a form.
 * @param {HTMLFormElement} form
 * @param {boolean} approved
 * @returns {Decision}
 */
function readDecision(form, approved) {
  const { session = "", run = "[]", call = "", hash = "", interrupt = "", result = "", tool = "" } = form.dataset;
  const data = new FormData(form);
  const reason = String(data.get("reason") ?? "").trim();
  const answer = data.has("answer") ? String(data.get("answer")).trim() : undefined;
  return { session, run: JSON.parse(run), call, hash, interrupt, result, tool, approved, reason, answer };
}

/**
 * Sends a decision. The run continues on the server.
 * @param {Decision} decision
 */
export function sendDecision({ session, run, call, hash, approved, reason, answer }) {
  const approval = approved ? { decision: "approve" } : { decision: "refuse", reason: reason || undefined };
  const decision = answer === undefined ? approval : { decision: "result", result: answer };
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
