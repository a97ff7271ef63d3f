// A session with 10,000 messages and hostile text: few rows are in the page, and it stays responsive.
import { assert, judge, options, scenario, shoot } from "./browser.mjs";

const [session, total] = options;

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: "longtask", buffered: true });
  });
  await page.goto(`/studio/sessions/${session}`);
  await page.locator(".row").first().waitFor();
  await page.evaluate(() => (window.longest = 0));
  for (const part of [0.1, 0.35, 0.6, 0.85, 1]) {
    await page.evaluate((part) => {
      const rows = document.getElementById("rows");
      rows.scrollTop = rows.scrollHeight * part;
    }, part);
    await page.waitForFunction(() => {
      const rows = document.getElementById("rows");
      const first = Math.floor(rows.scrollTop / 30);
      return document.getElementById(String(Math.min(first + 2, rows.scrollHeight / 30 - 1))) !== null;
    });
    const count = await page.locator(".row").count();
    assert.ok(count <= 200, `${count} rows`);
  }
  // A frame may be late on a busy machine, but the page does not hang.
  const longest = await page.evaluate(() => window.longest);
  assert.ok(longest < 400, `a task took ${longest} ms`);
  const last = Number(total) - 1;
  await page.goto(`/studio/sessions/${session}#${last}`);
  await page.locator(`[id="${last}"] a[aria-current]`).waitFor();
  await judge(page);
  await shoot(page, "large");

  // The conversation shows the last messages; hostile text is text.
  await page.goto(`/studio/talk/${session}`);
  await page.locator(".turn").first().waitFor();
  assert.ok((await page.locator(".turn").count()) <= 30);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const text = await page.locator("#conversation").textContent();
  assert.ok(text.includes("</script><script>window.hacked = 1</script>"));
  assert.ok(!text.includes("\u202e"));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${wide} px too wide`);
  await judge(page);
});
