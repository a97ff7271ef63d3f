// Decides about calls and answers questions in the inbox, and reloads it when something changes elsewhere.
import { handleApprovals, sendDecision } from "./approve.js";
import { notify } from "./live.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));

handleApprovals(main, async (decision, form) => {
  await sendDecision(decision);
  const item = form.closest("li");
  const next = item?.nextElementSibling ?? item?.previousElementSibling;
  item?.remove();
  notify(decision.answer !== undefined ? "Answered." : decision.approved ? "Approved." : "Refused.");
  const focus = next?.querySelector("button") ?? main;
  focus.focus();
  if (!main.querySelector(".approval")) location.reload();
});

let known = main.querySelectorAll(".approval").length;
window.addEventListener("patter:waiting", (event) => {
  const count = /** @type {CustomEvent<number>} */ (event).detail;
  const shown = main.querySelectorAll(".approval").length;
  const active = document.activeElement;
  const isField = active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement;
  const isWriting = main.contains(active) && isField;
  if (count !== shown && count !== known && !isWriting) location.reload();
  known = shown;
});
