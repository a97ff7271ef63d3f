// Runs as a user looks at them: list, search, timeline, entries by address, fork, undo, compare, replay, export, delete.
import { assert, judge, judgePages, options, scenario, shoot } from "./browser.mjs";

const [session, other, folder] = options;

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1440, height: 900 }, acceptDownloads: true });
  const page = await context.newPage();

  await page.goto("/studio/sessions");
  assert.ok((await page.locator(".sessions tbody tr").count()) >= 2);
  await page.getByLabel("Search").fill("boss");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=boss/);
  assert.equal(await page.locator(".sessions tbody tr").count(), 1);
  await page.locator(".sessions td a").first().click();
  await page.waitForURL(/\/studio\/sessions\//);

  // An entry has an address.
  await page.goto(`/studio/sessions/${session}#2`);
  await page.locator("#detail h2").waitFor();
  assert.equal(await page.locator(".row a[aria-current] .num").textContent(), "2");
  await page.locator("#rows").focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => location.hash === "#3");
  await page.keyboard.press("Home");
  await page.waitForFunction(() => location.hash === "#0");
  const model = page.locator(".row.model").first();
  await model.click();
  await page.getByText("Request, as it would be sent").click();
  assert.match(await page.locator("#detail details[open] pre").textContent(), /messages/);
  await judge(page);
  await shoot(page, "timeline");

  // Fork after an entry, and talk on.
  await page.getByRole("button", { name: "Fork after this entry" }).click();
  await page.waitForURL(/\/studio\/talk\//);
  assert.ok((await page.locator(".turn").count()) >= 1);

  // Replay: no difference, and then one.
  await page.goto(`/studio/sessions/${session}`);
  await page.getByRole("link", { name: "Replay against the agent" }).click();
  await page.getByText("No difference.").waitFor();
  await judge(page);
  const { readFileSync, writeFileSync } = await import("node:fs");
  const file = `${folder}/a.gram`;
  writeFileSync(file, readFileSync(file, "utf8").replace("'Greet.'", "'Greet politely.'"));
  await page.reload();
  await page.getByText("would differ").waitFor();
  assert.match(await page.locator("main").textContent(), /Greet politely\./);
  await judge(page);
  await shoot(page, "replay");

  // Compare.
  await page.goto("/studio/sessions");
  for (const id of [session, other]) await page.locator(`input[value="${id}"]`).check();
  await page.getByRole("button", { name: "Compare two sessions" }).click();
  await page.getByRole("heading", { name: "Compare two sessions" }).waitFor();
  assert.match(await page.locator(".pair h2").first().textContent(), /differs/);
  assert.ok((await page.locator(".changes ins").count()) + (await page.locator(".changes del").count()) > 0);
  await judge(page);
  await shoot(page, "compare");

  // Export.
  await page.goto(`/studio/sessions/${session}`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export" }).click()]);
  assert.equal(download.suggestedFilename(), `${session}.jsonl`);

  await judgePages(open, [
    ["sessions", "/studio/sessions"],
    ["session", `/studio/sessions/${session}#2`, "#detail h2"],
    ["entry", `/studio/sessions/${session}/entries/2`],
    ["comparison", `/studio/compare?session=${session}&session=${other}`],
  ]);

  // Undo and delete.
  await page.getByRole("button", { name: "Undo the last message" }).click();
  await page.getByText("undone").waitFor();
  page.on("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/studio/sessions");
  assert.equal(await page.locator(`input[value="${session}"]`).count(), 0);
});
