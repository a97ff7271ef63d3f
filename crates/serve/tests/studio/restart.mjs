// The server restarts in the middle of a stream: the page says so, reconnects, and the run is resumed.
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
  await page.getByText("The run was interrupted.").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Late.").waitFor();
  assert.equal(await page.locator(".turn").count(), 1);
  assert.equal(await page.locator("#status").textContent(), "");
});
lines.close();
