// Filters and sorts the cases. Everything else works without this script.
(() => {
  const table = document.querySelector("table.cases");
  const controls = document.getElementById("controls");
  if (!table || !controls) return;
  const [find, only, sort] = ["find", "only", "sort"].map((id) => document.getElementById(id));
  const shown = document.getElementById("shown");
  const rows = [...table.tBodies].map((body, index) => {
    const head = body.querySelector("th");
    return { body, index, id: head.querySelector("a").textContent, text: head.textContent.toLowerCase(), ...body.dataset };
  });
  const orders = {
    "": (a, b) => a.index - b.index,
    id: (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }),
  };
  for (const key of ["fails", "latency", "tokens", "cost"]) {
    // Unknown values come last.
    const value = (row) => (row[key] ? Number(row[key]) : -1);
    orders[key] = (a, b) => value(b) - value(a) || a.index - b.index;
  }
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const matches = words.every((word) => row.text.includes(word)) && (!only.value || row.is.split(" ").includes(only.value));
      row.body.hidden = !matches;
      count += matches;
    }
    shown.textContent = `${count} of ${rows.length} cases`;
  };
  const order = () => table.append(...[...rows].sort(orders[sort.value]).map((row) => row.body));
  controls.addEventListener("submit", (event) => event.preventDefault());
  find.addEventListener("input", filter);
  only.addEventListener("change", filter);
  sort.addEventListener("change", order);
  controls.hidden = false;
  // A browser may restore earlier choices.
  filter();
  if (sort.value) order();
})();
