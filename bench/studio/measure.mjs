// Measures how fast the pages of the studio appear: the first paint after the server's answer began, and when the map is drawn.
// Each is measured in an open window, without the browser's cache, and in a window whose process has just started.
import { createRequire } from "node:module";

const [packages, rounds, ...entries] = process.argv.slice(2);
const { chromium } = createRequire(packages + "/")("playwright-core");
const pages = entries.map((entry) => entry.split("|"));

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const cells = (values) => `${median(values).toFixed(0)} ms | ${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)} ms`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"],
});

async function openWindow() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  return page;
}

/** Goes to an address, and returns its moments in milliseconds. */
async function visit(page, url, ready) {
  // The page itself notes when it is drawn: asking it from outside takes longer than drawing it.
  await page.addInitScript((selector) => {
    const look = () => {
      if (selector && !document.querySelector(selector)) return requestAnimationFrame(look);
      requestAnimationFrame(() => requestAnimationFrame(() => (window.drawnAt = performance.now())));
    };
    look();
  }, ready);
  await page.goto(url);
  await page.waitForFunction(() => window.drawnAt && performance.getEntriesByName("first-contentful-paint").length > 0);
  return page.evaluate(() => {
    const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const { responseStart, requestStart } = performance.getEntriesByType("navigation")[0];
    return { answered: responseStart - requestStart, painted: painted - responseStart, drawn: Math.max(window.drawnAt, painted) };
  });
}

/** Visits all pages in turn, several times. The first time does not count. */
async function measure(title, visitOne) {
  const moments = pages.map(() => []);
  for (let round = 0; round <= Number(rounds); round += 1) {
    for (const [index, [, url, ready]] of pages.entries()) {
      const moment = await visitOne(url, ready);
      if (round > 0) moments[index].push(moment);
    }
  }
  console.log(`\n| ${title} | answer of the server | range | first paint after it | range | drawn, from the click | range |`);
  console.log("|---|---|---|---|---|---|---|");
  for (const [index, [name]] of pages.entries()) {
    const column = (key) => cells(moments[index].map((moment) => moment[key]));
    console.log(`| ${name} | ${column("answered")} | ${column("painted")} | ${column("drawn")} |`);
  }
}

const windows = new Map();
await measure("in an open window", async (url, ready) => {
  // One window for each address, since the scripts that are added to a window stay.
  if (!windows.has(url)) windows.set(url, await openWindow());
  return visit(windows.get(url), url, ready);
});
await measure("in a new process", async (url, ready) => {
  const page = await openWindow();
  const moments = await visit(page, url, ready);
  await page.context().close();
  return moments;
});
await browser.close();
