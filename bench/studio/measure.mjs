// Measures how fast the pages of the studio appear: the first paint after the server's answer began, and when the map is drawn.
import { createRequire } from "node:module";

const [packages, rounds, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(packages + "/")("playwright-core");

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const cells = (values) => `${median(values).toFixed(0)} ms | ${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)} ms`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"],
});

/** Opens a page in a window that has nothing of it yet, and returns its moments in milliseconds. */
async function visit(url, ready) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(url);
  if (ready) await page.waitForSelector(ready);
  const moments = await page.evaluate(async () => {
    const painted = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
    for (let frame = 0; painted() === undefined && frame < 600; frame += 1) await new Promise(requestAnimationFrame);
    const drawn = await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now()))));
    const { responseStart, requestStart, transferSize } = performance.getEntriesByType("navigation")[0];
    return { answered: responseStart - requestStart, painted: painted() - responseStart, drawn, bytes: transferSize };
  });
  await context.close();
  return moments;
}

console.log("| page | answer of the server | range | first paint after it | range | drawn, from the click | range |");
console.log("|---|---|---|---|---|---|---|");
for (const entry of pages) {
  const [name, url, ready] = entry.split("|");
  await visit(url, ready);
  const moments = [];
  for (let round = 0; round < Number(rounds); round += 1) moments.push(await visit(url, ready));
  const column = (key) => cells(moments.map((moment) => moment[key]));
  console.log(`| ${name} | ${column("answered")} | ${column("painted")} | ${column("drawn")} |`);
}
await browser.close();
