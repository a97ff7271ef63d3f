// Experiments: a wrong file is reported, a comparison runs while people look, its report decides, and another is stopped and resumed.
import { assert, judge, judgePages, scenario, shoot } from "./browser.mjs";

await scenario(async ({ open }) => {
  // The browser reports that the server refused a request, which is expected here.
  const context = await open({ allow: [/status of 400/] });
  const page = await context.newPage();
  await page.goto("/studio/experiments");
  await page.getByText("No experiments yet.").waitFor();
  await page.getByRole("link", { name: "New experiment" }).click();
  await judge(page);
  await shoot(page, "new-experiment");

  await page.getByLabel("Agent").selectOption("greeter");
  await page.getByLabel("Cases").fill("../elsewhere.gram");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("there is no file `../elsewhere.gram` in the project").waitFor();

  const fillArms = async (repeats) => {
    await page.getByLabel("Cases").fill("cases.gram");
    await page.getByLabel("Name").nth(0).fill("a");
    await page.getByLabel("What differs").nth(0).fill("sayHelloA.gram");
    await page.getByLabel("Name").nth(1).fill("b");
    await page.getByLabel("What differs").nth(1).fill("sayHelloB.gram");
    await page.getByLabel("Runs per case").fill(repeats);
  };
  await fillArms("5");
  // By keyboard.
  await page.getByRole("button", { name: "Start" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/experiments\/x-/);
  const report = page.url();
  await page.getByText("Keep a").waitFor();
  assert.equal(await page.locator("nav [aria-current=page]").textContent(), "Experiments");
  // The cases of the report can be searched, as in the file.
  assert.ok((await page.locator("table.cases tbody").count()) > 0);

  await page.goto("/studio/experiments/new");
  await page.getByLabel("Agent").selectOption("greeter");
  await fillArms("1000");
  await page.getByRole("button", { name: "Start" }).click();
  await page.locator("#progress").waitFor();
  await page.waitForFunction(() => document.querySelectorAll("#experiment td.passed, #experiment td.mixed").length > 5);
  await judge(page);
  await shoot(page, "experiment-running");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".report").waitFor();
  assert.match(await page.locator(".report").innerText(), /Incomplete\./);

  // It is resumed where it was: nothing runs again, and its address stays.
  const interrupted = page.url();
  const told = /(\S+)\sof\s\S+\splanned/.exec(await page.locator(".report").innerText())?.[1] ?? "";
  const done = Number(told.replace(/\D/g, ""));
  assert.ok(done > 5);
  await judge(page);
  await shoot(page, "experiment-interrupted");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator("#progress").waitFor();
  assert.equal(page.url(), interrupted);
  assert.ok((await page.locator("#progress").evaluate((bar) => bar.value)) >= done);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".report").waitFor();

  await page.goto("/studio/experiments");
  assert.deepEqual((await page.locator("tbody .state").allTextContents()).sort(), ["ended", "interrupted"]);
  await judgePages(open, [
    ["experiment", new URL(report).pathname, ".report"],
    ["experiments", "/studio/experiments"],
    ["new-experiment", "/studio/experiments/new"],
  ]);
});
