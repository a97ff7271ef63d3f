// A conversation that uses other tools than the project, and remembers that.
import { assert, judge, scenario, shoot } from "./browser.mjs";

await scenario(async ({ open }) => {
  const context = await open();
  const page = await context.newPage();
  const say = async (text, turns) => {
    await page.getByLabel("Message").fill(text);
    await page.keyboard.press("Enter");
    await page.locator(".turn .foot").nth(turns - 1).waitFor();
  };
  await page.goto("/studio/talk?agent=greeter");
  assert.deepEqual(await page.getByLabel("Tools").locator("option").allTextContents(), ["of the project", "terse"]);
  await say("Hello! My name is Ada Lovelace.", 1);
  await page.getByLabel("Tools").selectOption("terse");
  await say("Hello! My name is Grace Hopper.", 2);
  const replies = await page.locator(".call").allTextContents();
  assert.match(replies[0], /Ada Lovelace/);
  assert.match(replies[1], /Hello, Grace!/);
  assert.match(replies[1], /greetB\/sayHello/);
  await judge(page);
  await shoot(page, "talk-variant");
  await page.reload();
  assert.equal(await page.getByLabel("Tools").inputValue(), "terse");
});
