// The server restarts in the middle of a stream: the page says so, reconnects, and the run continues.
import { assert, scenario } from "./browser.mjs";
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin });
/** Tells the test something, and waits for its answer. */
const ask = (text) => new Promise((resolve) => {
  lines.once("line", resolve);
  console.error(text);
});

await scenario(async ({ open }) => {
  const context = await open({ allow: [/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_CONNECTION_RESET/, /status of 503/, /ERR_EMPTY_RESPONSE/] });
  const page = await context.newPage();
  await page.goto("/studio/talk?agent=slow");
  await page.getByLabel("Message").fill("Wait");
  await page.keyboard.press("Enter");
  await page.locator(".call").waitFor();
  await ask("stop");
  await page.getByText("Connection lost").waitFor();
  await ask("start");
  // The server continues the run by itself. A page that was faster offers to resume it, which joins that.
  const resume = page.getByRole("button", { name: "Resume" });
  await resume.or(page.getByText("Late.")).first().waitFor();
  if (await resume.isVisible()) await resume.click();
  await page.getByText("Late.").waitFor();
  assert.equal(await page.locator(".turn").count(), 1);
  assert.equal(await page.locator("#status").textContent(), "");
});
lines.close();
