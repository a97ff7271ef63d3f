// Pages, filters and sorts the cases. Everything else works without this script.
(() => {
  const table = document.querySelector("table.cases");
  const controls = document.getElementById("controls");
  if (!table || !controls) return;
  const [find, only, sort, shown, pages, previous, next] = ["find", "only", "sort", "shown", "pages", "previous", "next"]
    .map((id) => document.getElementById(id));
  const pageSize = 25;
  const names = ["number", "id", "text", "flags", "fails", "latency", "tokens", "cost"];
  const rows = JSON.parse(document.getElementById("index").textContent)
    .map((values, index) => Object.assign({ index }, ...names.map((name, column) => ({ [name]: values[column] }))));
  // The first rows are elements; the others are markup that is parsed when it is shown.
  const bodies = [...table.tBodies];
  const markup = document.getElementById("rows").textContent.split("\u001e");
  const first = bodies.length;
  const body = (row) => {
    if (!bodies[row.index]) {
      const template = document.createElement("template");
      template.innerHTML = "<table>" + markup[row.index - first] + "</table>";
      bodies[row.index] = document.adoptNode(template.content.querySelector("tbody"));
    }
    return bodies[row.index];
  };
  const orders = {
    "": (a, b) => a.index - b.index,
    file: (a, b) => a.number - b.number,
    id: (a, b) => collator.compare(a.id, b.id),
  };
  const collator = new Intl.Collator(undefined, { numeric: true });
  for (const key of ["fails", "latency", "tokens", "cost"]) {
    // Unknown values come last.
    orders[key] = (a, b) => (b[key] ?? -1) - (a[key] ?? -1) || a.index - b.index;
  }
  let matching = rows;
  let page = 0;
  const show = () => {
    page = Math.max(0, Math.min(page, Math.ceil(matching.length / pageSize) - 1));
    const start = page * pageSize;
    const visible = matching.slice(start, start + pageSize);
    for (const old of [...table.tBodies]) old.remove();
    table.append(...visible.map(body));
    const number = (value) => value.toLocaleString("en");
    const range = matching.length > pageSize ? `${number(start + 1)}–${number(start + visible.length)} of ` : "";
    const total = matching.length < rows.length ? ` (${number(rows.length)} in total)` : "";
    shown.textContent = `${range}${number(matching.length)} ${matching.length === 1 ? "case" : "cases"}${total}`;
    pages.hidden = matching.length <= pageSize;
    // A disabled button would lose the focus.
    previous.setAttribute("aria-disabled", page === 0);
    next.setAttribute("aria-disabled", start + pageSize >= matching.length);
  };
  const update = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) => {
      if (only.value && !row.flags.split(" ").includes(only.value)) return false;
      row.lower ??= words.length ? row.text.toLowerCase() : undefined;
      return words.every((word) => row.lower.includes(word));
    };
    matching = rows.filter(matches).sort(orders[sort.value]);
    page = 0;
    show();
  };
  const turn = (step) => {
    const start = (page + step) * pageSize;
    if (start < 0 || start >= matching.length) return;
    page += step;
    show();
    document.getElementById("cases").scrollIntoView();
  };
  const follow = () => {
    const target = /^#case-(\d+)$/.exec(location.hash);
    const row = target && rows.find((row) => row.number === Number(target[1]));
    if (!row) return;
    if (!matching.includes(row)) {
      find.value = only.value = "";
      update();
    }
    page = Math.floor(matching.indexOf(row) / pageSize);
    show();
    body(row).scrollIntoView();
  };
  controls.addEventListener("submit", (event) => event.preventDefault());
  find.addEventListener("input", update);
  only.addEventListener("change", update);
  sort.addEventListener("change", update);
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  addEventListener("hashchange", follow);
  for (const link of document.querySelectorAll("a[data-only]")) {
    link.addEventListener("click", () => {
      find.value = "";
      only.value = link.dataset.only;
      update();
    });
  }
  controls.hidden = false;
  // A browser may restore earlier choices.
  update();
  follow();
})();
