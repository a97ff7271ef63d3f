// The pages of agents and tools: findings in place, bindings, permissions, schemas, hostile names.
import { assert, judge, judgePages, scenario, shoot } from "./browser.mjs";

await scenario(async ({ open }) => {
  await judgePages(open, [
    ["agent", "/studio/agents/refunds", ".source"],
    ["agent-hostile", `/studio/agents/${encodeURIComponent("</script><script>alert(1)</script>")}`, ".source"],
    ["tool", "/studio/tools/shop%2Frefund"],
  ]);
  const context = await open({ allow: [/status of 404/] });
  const page = await context.newPage();
  await page.goto("/studio/tools/shop%2Frefund");

  // From the tool to the agent, whose findings are where they belong.
  await page.getByRole("link", { name: "refunds" }).click();
  await page.waitForURL("**/studio/agents/refunds");
  const line = page.locator(".source li", { hasText: "modle" });
  assert.match(await line.locator(".finding.error").first().innerText(), /error P004.*modle/s);
  assert.ok(await line.locator("mark.error").first().isVisible());
  const text = await page.locator("main").innerText();
  for (const words of ["Asks first because ask shop/refund", "nothing implements the tool nowhere/tool", "this project"]) {
    assert.ok(text.includes(words), `${words} in ${text}`);
  }
  await page.locator("summary", { hasText: "Schemas" }).first().click();
  await page.getByText("OpenAI, strict").first().waitFor();
  await judge(page);
  await shoot(page, "agent-schemas", true);
  await page.getByRole("link", { name: "desk" }).click();
  await page.waitForURL("**/studio/agents/desk");
  assert.ok((await page.locator("main").innerText()).includes("otherwise Allowed because the agent declares it"));

  // A name that looks like markup is text everywhere.
  await page.goto("/");
  assert.equal(await page.locator("main script, main img").count(), 0);
  await page.goto("/studio/agents/nobody");
  await judge(page);
});
