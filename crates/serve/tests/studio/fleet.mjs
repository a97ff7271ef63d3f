// A thousand agents.
import { appendFileSync } from "node:fs";
import { assert, scenario, shoot } from "./browser.mjs";

/** Reports a figure to those who look at the pictures. */
const measure = (words) => process.env.STUDIO_SHOTS && appendFileSync(`${process.env.STUDIO_SHOTS}/figures.txt`, `${words}\n`);

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  // Time of the processor, because other tests run at the same time.
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto("/");
  await page.waitForSelector("#map.live");
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const { metrics } = await session.send("Performance.getMetrics");
  const taken = metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  measure(`drawn in ${Math.round(taken)} ms of the processor`);
  assert.equal(await page.locator("#map .agent, #map .delegate").count(), 1000 + 8);
  assert.ok(taken < 1500, `${taken} ms`);
  // Only what is near is drawn.
  assert.ok((await page.locator("#map .node:visible").count()) < 400);
  const moved = await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const start = performance.now();
    for (let step = 0; step < 10; step += 1) {
      document.getElementById("map").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
      await frame();
    }
    return (performance.now() - start) / 10;
  });
  measure(`moved in ${Math.round(moved)} ms`);
  await page.getByLabel("Search").fill("agent0777");
  await page.waitForFunction(() => document.querySelectorAll("#map .hit").length === 1);
  assert.ok(await page.locator("#map .hit").isVisible());
  await shoot(page, "fleet");
});
