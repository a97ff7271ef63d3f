// A browser that counts everything that must not happen: errors, violations of the policy, requests to elsewhere.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import assert from "node:assert/strict";

const [base, packages, ...rest] = process.argv.slice(2);
const require = createRequire(packages + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export { assert, base };
/** Further arguments of the test. */
export const options = rest;

/** Starts the browser, runs a scenario, and fails if a page did what it must not. */
export async function scenario(run) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"],
  });
  const problems = [];
  try {
    const open = (settings) => openContext(browser, problems, settings);
    await run({ open, problems });
    assert.deepEqual(problems, []);
    console.log("ok");
  } finally {
    await browser.close();
  }
}

/** Opens a window. `allow` says which messages are expected. */
async function openContext(browser, problems, { allow = [], ...settings } = {}) {
  const context = await browser.newContext({ baseURL: base, reducedMotion: "reduce", ...settings });
  context.setDefaultTimeout(40_000);
  const report = (text) => allow.some((known) => known.test(text)) || problems.push(text);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  context.on("page", (page) => {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") report(`console: ${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => report(`error: ${error.stack}`));
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(base) && !url.startsWith("data:")) report(`request: ${url}`);
    });
  });
  return context;
}

/** Judges the accessibility of a page, and its width. */
export async function judge(page) {
  // Evaluated by the browser itself, which the policy of the page does not concern.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], page.url());
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `${page.url()} is ${overflow} px too wide`);
}

/** Saves a picture for people to look at, if a folder for them is named. */
export async function shoot(page, name, full = false) {
  const folder = process.env.STUDIO_SHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: full });
}

/** The windows in which each page is judged. */
export const WINDOWS = [
  ["light", { viewport: { width: 1280, height: 800 } }],
  ["dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 } }],
];

/** Opens pages in all windows, judges them, and saves pictures. */
export async function judgePages(open, pages) {
  for (const [name, settings] of WINDOWS) {
    const context = await open(settings);
    const page = await context.newPage();
    for (const [title, path, ready] of pages) {
      await page.goto(path);
      if (ready) await page.waitForSelector(ready);
      await judge(page);
      await shoot(page, `${title}-${name}`);
    }
    await context.close();
  }
}
