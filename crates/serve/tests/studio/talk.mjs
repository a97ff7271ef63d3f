// Talking as a user would, by keyboard: streaming, calls, approvals, agents that call agents, undo, stop, two tabs.
import { assert, judge, judgePages, scenario, shoot } from "./browser.mjs";

/** Sends a message by keyboard. */
async function say(page, text) {
  await page.getByLabel("Message").focus();
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();

  // A conversation with tools.
  await page.goto("/studio/talk?agent=greeter");
  await judge(page);
  await say(page, "I am **Ada** </script><b>");
  await page.locator(".turn .foot").waitFor();
  assert.equal(await page.locator(".bubble").textContent(), "I am **Ada** </script><b>");
  assert.deepEqual(await page.locator(".prose").allTextContents().then((all) => all.map((text) => text.trim())), ["Let me look.", "Hello!"]);
  await page.locator(".call summary").focus();
  await page.keyboard.press("Enter");
  await page.getByText("Bound to").waitFor();
  assert.match(await page.locator(".call").textContent(), /look.*Result.*seen/s);
  assert.match(page.url(), /\/studio\/talk\/\d{8}-/);
  await judge(page);
  await shoot(page, "talk-tools");

  // A second tab follows the first.
  const other = await context.newPage();
  await other.goto(page.url());
  await say(page, "Again");
  await other.getByText("Hello again!").waitFor();
  assert.equal(await other.locator(".turn").count(), 2);
  // What was opened stays open.
  assert.equal(await page.locator(".call").first().getAttribute("open"), "");
  await other.close();

  // Undo takes the last message back, to be written again.
  await page.getByRole("button", { name: "Undo" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 1);
  assert.equal(await page.getByLabel("Message").inputValue(), "Again");

  // An approval in place, of an agent that another called; reasoning is folded.
  await page.goto("/studio/talk?agent=boss");
  await say(page, "Pay");
  const approval = page.locator(".approval");
  await approval.waitFor();
  await page.locator(".thought summary").first().waitFor();
  assert.ok(await page.locator(".nested .approval").isVisible());
  await judge(page);
  await shoot(page, "talk-approval");
  const inbox = await context.newPage();
  await inbox.goto("/studio/inbox");
  assert.equal(await inbox.locator(".approval").count(), 1);
  await judge(inbox);
  await shoot(inbox, "inbox");
  await approval.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("All paid.").waitFor();
  assert.equal(await page.locator(".nested .call").count(), 1);
  await shoot(page, "talk-nested", true);
  await inbox.reload();
  await inbox.getByText("Nothing waits for you.").waitFor();

  // A refusal in the inbox, with a reason.
  await page.goto("/studio/talk?agent=clerk");
  await say(page, "Pay");
  await approval.waitFor();
  await inbox.reload();
  await inbox.getByLabel("Reason for a refusal").fill("too much");
  await inbox.getByRole("button", { name: "Refuse" }).click();
  await inbox.getByText("Nothing waits for you.").waitFor();
  await page.getByText("Done.").waitFor();
  assert.match(await page.locator(".call").textContent(), /too much/);

  // Stop.
  await page.goto("/studio/talk?agent=slow");
  await say(page, "Wait");
  await page.locator(".call").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Stopped.").waitFor();

  // An error of the model.
  await page.goto("/studio/talk?agent=broken");
  await say(page, "Hi");
  await page.locator(".failure").waitFor();
  assert.match(await page.locator(".failure").textContent(), /out of order/);

  // Another model for this session.
  await page.goto("/studio/talk?agent=counter");
  await page.getByLabel("Model").fill("demo");
  await say(page, "Hi");
  await page.locator(".foot, .failure").first().waitFor();
  assert.equal((await page.locator(".turn .who i").textContent()), "demo");
  await page.reload();
  assert.equal(await page.getByLabel("Model").inputValue(), "demo");

  await page.goto("/studio/talk?agent=boss");
  await say(page, "Pay");
  await approval.waitFor();
  const path = new URL(page.url()).pathname;
  await judgePages(open, [["conversation", path, ".approval"], ["waiting", "/studio/inbox", ".approval"], ["new", "/studio/talk?agent=greeter"]]);
});
