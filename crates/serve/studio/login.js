// Exchanges the token in the address, or the one that is typed, for a cookie.

/** @param {string} token */
async function logIn(token) {
  const response = await fetch("/studio/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (response.ok) {
    history.replaceState(null, "", location.pathname + location.search);
    location.reload();
    return;
  }
  const failure = await response.json().catch(() => null);
  const message = failure?.error?.message ?? `The server answered ${response.status}.`;
  const place = document.getElementById("login-error");
  if (place) place.textContent = message.charAt(0).toUpperCase() + message.slice(1);
}

const form = document.getElementById("login");
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const token = new FormData(/** @type {HTMLFormElement} */ (form)).get("token");
  void logIn(String(token ?? "").trim());
});

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) void logIn(token);
