// What all pages have: how many calls wait for an approval, and short notices.

/** How often the inbox is looked at, in milliseconds. */
const INTERVAL = 5000;

/**
 * Shows a short notice, which screen readers announce.
 * @param {string} text
 */
export function notify(text) {
  const place = document.getElementById("notice");
  if (!place) return;
  place.textContent = text;
  window.setTimeout(() => place.textContent === text && (place.textContent = ""), 6000);
}

/**
 * Sends a request, and throws an error with the message of the server if it fails.
 * @param {string} address
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
export async function request(address, options) {
  const response = await fetch(address, options);
  if (response.ok) return response;
  const failure = await response.json().catch(() => null);
  const message = failure?.error?.message ?? `the server answered ${response.status}`;
  throw new Error(message);
}

/**
 * Sends JSON.
 * @param {string} address
 * @param {unknown} body
 * @param {RequestInit} [options]
 */
export function post(address, body, options) {
  return request(address, {
    ...options,
    method: "POST",
    headers: { "Content-Type": "application/json", ...options?.headers },
    body: JSON.stringify(body),
  });
}

/** Shows how many calls wait. */
async function countWaiting() {
  const place = document.getElementById("inbox-count");
  if (!place || document.hidden) return;
  const response = await fetch("/api/approvals").catch(() => null);
  if (!response?.ok) return;
  const { approvals, questions } = await response.json();
  const count = approvals.length + questions.length;
  place.hidden = count === 0;
  place.textContent = String(count);
  place.setAttribute("aria-label", `${count} waiting`);
  window.dispatchEvent(new CustomEvent("patter:waiting", { detail: count }));
}

// A token in the address is not needed any more.
if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname + location.search);
if (document.getElementById("inbox-count")) {
  void countWaiting();
  window.setInterval(() => void countWaiting(), INTERVAL);
  document.addEventListener("visibilitychange", () => void countWaiting());
}
