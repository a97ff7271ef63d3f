// Editing: findings while typing, the review, saving, and a file that changed on disk.
import { readFileSync, writeFileSync } from "node:fs";
import { assert, judge, judgePages, options, scenario, shoot } from "./browser.mjs";

const [folder] = options;
const path = `${folder}/shop.gram`;
const address = `/studio/edit/${encodeURIComponent(path)}`;
const hostile = `/studio/edit/${encodeURIComponent(`${folder}/hostile.gram`)}`;

await scenario(async ({ open }) => {
  await judgePages(open, [["edit", address, "#findings li"], ["edit-hostile", hostile, "#findings li"]]);
  const context = await open({ allow: [/status of 409/] });
  const page = await context.newPage();
  await page.goto("/studio/agents/desk");
  await page.getByRole("link", { name: "Edit" }).click();
  await page.waitForURL(`**${address}#L2`);
  const text = page.getByLabel("Text of the file");
  const original = readFileSync(path, "utf8");
  assert.equal(await text.inputValue(), original);
  const save = page.getByRole("button", { name: "Review and save" });
  assert.ok(await save.isDisabled());

  // A mistake is found while typing, and selected when it is chosen.
  await text.fill(original.replace('  model: "demo",\n  deny', '  modell: "demo",\n  deny'));
  const finding = page.locator("#findings li", { hasText: "has no property `modell`" });
  await finding.waitFor();
  await finding.getByRole("button").click();
  assert.equal(await page.evaluate(() => String(window.getSelection())), "modell");
  await page.locator("#changes li", { hasText: "`model` removed" }).or(page.locator("#changes li", { hasText: "model" })).first().waitFor();
  await shoot(page, "edit-finding");
  await judge(page);

  // The review says what changes; Escape leaves it.
  const polite = original.replace("Answers questions about orders", "Answers politely");
  await text.fill(polite);
  await page.keyboard.press("Control+s");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("agent `desk`: `description` changed").waitFor();
  await judge(page);
  await shoot(page, "edit-review");
  await page.keyboard.press("Escape");
  assert.equal(readFileSync(path, "utf8"), original);
  await page.keyboard.press("Control+s");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved. New turns use it.").waitFor();
  assert.equal(readFileSync(path, "utf8"), polite);
  assert.ok(await save.isDisabled());

  // Somebody else changes the file.
  const theirs = polite.replace("Refunds orders", "Refunds all orders");
  writeFileSync(path, theirs);
  const mine = polite.replace("Answers politely", "Answers at once");
  await text.fill(mine);
  await save.click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("The file changed on disk").waitFor();
  await dialog.getByText("agent `refunds`: `description` changed").waitFor();
  assert.equal(readFileSync(path, "utf8"), theirs, "nothing was overwritten");
  await judge(page);
  await shoot(page, "edit-conflict");
  await dialog.getByRole("button", { name: "Keep editing" }).click();
  assert.equal(await text.inputValue(), mine);
  await save.click();
  await dialog.getByRole("button", { name: "Discard mine" }).click();
  assert.equal(await text.inputValue(), theirs);
  await text.fill(mine);
  await save.click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText(/Saved/).waitFor();
  assert.equal(readFileSync(path, "utf8"), mine);
});
