// Questions of workflows: answered in the conversation, and in the inbox.
import { assert, judge, scenario, shoot } from "./browser.mjs";

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto("/studio/talk?agent=asking");
  await page.getByLabel("Message").fill("Go");
  await page.keyboard.press("Enter");
  const form = page.locator(".approval");
  await form.waitFor();
  assert.match(await form.textContent(), /Is it seen\?/);
  assert.equal(await form.getByRole("button", { name: "Approve" }).count(), 0, "a question is not approved");
  await judge(page);
  await shoot(page, "talk-question");
  await form.getByLabel("Answer").fill("Yes, it is.");
  await form.getByRole("button", { name: "Answer" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".turn .prose", { hasText: "Yes, it is." }).waitFor();
  await form.waitFor({ state: "detached" });

  // The field has the type of the answer.
  await page.goto("/studio/talk?agent=deciding");
  await page.getByLabel("Message").fill("Go");
  await page.keyboard.press("Enter");
  await form.waitFor();
  await judge(page);
  await shoot(page, "talk-question-choice");
  await form.getByLabel("Answer").selectOption("Yes");
  await form.getByRole("button", { name: "Answer" }).click();
  await page.locator(".turn .prose", { hasText: "Paid back." }).waitFor();

  // In the inbox, whatever the session is.
  await page.goto("/studio/talk?agent=asking");
  await page.getByLabel("Message").fill("Again");
  await page.keyboard.press("Enter");
  await form.waitFor();
  const inbox = await context.newPage();
  await inbox.goto("/studio/inbox");
  await inbox.locator(".approval", { hasText: "Is it seen?" }).waitFor();
  await judge(inbox);
  await shoot(inbox, "inbox-question");
  await inbox.getByLabel("Answer").fill("No.");
  await inbox.getByRole("button", { name: "Answer" }).click();
  await inbox.getByText("Nothing waits for you.").waitFor();
  await page.locator(".turn .prose", { hasText: "No." }).waitFor();
});
