// The form for a new experiment.
import { post } from "./live.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("new-experiment"));
const problem = /** @type {HTMLElement} */ (document.getElementById("problem"));
const button = /** @type {HTMLButtonElement} */ (form.querySelector("button.primary"));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  button.disabled = true;
  button.textContent = "Starting…";
  const data = new FormData(form);
  const names = data.getAll("name");
  const whats = data.getAll("what");
  const arms = names.map((name, index) => ({ name: String(name).trim(), what: String(whats[index] ?? "").trim() }));
  const body = {
    agent: data.get("agent"),
    cases: String(data.get("cases") ?? "").trim(),
    arms,
    repeats: Number(data.get("repeats")),
    stops_early: data.has("stops_early"),
  };
  try {
    const response = await post("/studio/experiments", body);
    const { id } = await response.json();
    location.assign(`/studio/experiments/${encodeURIComponent(id)}`);
  } catch (error) {
    problem.textContent = error instanceof Error ? error.message : String(error);
    button.disabled = false;
    button.textContent = "Start";
  }
});
