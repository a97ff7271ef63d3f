// Logging in by the address, and by hand; nothing is shown before.
import { assert, base, judge, options, scenario, shoot } from "./browser.mjs";

const [token] = options;
const allow = [/status of 401/];

await scenario(async ({ open }) => {
  const context = await open({ allow });
  const page = await context.newPage();
  await page.goto("/studio/sessions");
  assert.equal(await page.locator("h1").textContent(), "Log in to Patter");
  await judge(page);
  await shoot(page, "login");
  await page.getByLabel("Token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The token is not valid").waitFor();
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Runs" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/studio/sessions");
  // The cookie is sent by pages of this server, and cannot be read by them.
  assert.equal(await page.evaluate(() => document.cookie), "");
  assert.equal(await page.evaluate(() => fetch("/api/agents").then((response) => response.status)), 200);

  const other = await open({ allow });
  const linked = await other.newPage();
  await linked.goto(`${base}/#token=${encodeURIComponent(token)}`);
  await linked.getByRole("heading", { name: "Project" }).waitFor();
  assert.equal(new URL(linked.url()).hash, "");
});
