// The report of an experiment that was interrupted: a button resumes it.
import { post } from "./live.js";

const button = /** @type {HTMLButtonElement | null} */ (document.getElementById("resume"));
const problem = document.getElementById("problem");

button?.addEventListener("click", async () => {
  const label = button.textContent;
  button.disabled = true;
  button.textContent = "Resuming…";
  if (problem) problem.textContent = "";
  try {
    await post(`/studio/experiments/${encodeURIComponent(button.dataset.id ?? "")}/resume`, {});
    location.reload();
  } catch (error) {
    button.disabled = false;
    button.textContent = label;
    if (problem) problem.textContent = error instanceof Error ? error.message : String(error);
  }
});
