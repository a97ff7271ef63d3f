// The frame: navigation by keyboard, in light, dark and narrow windows.
import { assert, judgePages, scenario } from "./browser.mjs";

await scenario(async ({ open }) => {
  await judgePages(open, [
    ["project", "/"],
    ["talk", "/studio/talk"],
    ["runs", "/studio/sessions"],
    ["experiments", "/studio/experiments"],
    ["inbox", "/studio/inbox"],
  ]);
  const context = await open();
  const page = await context.newPage();
  await page.goto("/");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
  for (const name of ["patter", "Project", "Talk", "Runs"]) {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), name);
  }
  await page.keyboard.press("Enter");
  await page.waitForURL("**/studio/sessions");
  assert.equal(await page.locator("nav [aria-current=page]").textContent(), "Runs");
});
