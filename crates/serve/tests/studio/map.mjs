// The map: by pointer and keyboard, with filters, and the pages that it leads to.
import { assert, judge, judgePages, scenario, shoot } from "./browser.mjs";

const view = (page) => page.locator("#map > svg").getAttribute("viewBox").then((text) => text.split(" ").map(Number));
/** Waits until exactly these are lit: a filter takes effect with the next frame. */
const untilLit = (page, names) => page.waitForFunction((expected) => {
  const nodes = [...document.querySelectorAll("#map .node:not(.dim)")];
  return nodes.map((node) => node.dataset.name).sort().join() === expected;
}, names.join());

await scenario(async ({ open }) => {
  await judgePages(open, [["map", "/", "#map.live"]]);
  const context = await open();
  const page = await context.newPage();
  await page.goto("/");
  await page.waitForSelector("#map.live");

  // By keyboard.
  await page.locator("#map").focus();
  const before = await view(page);
  await page.keyboard.press("+");
  const closer = await view(page);
  assert.ok(closer[2] < before[2], "plus zooms in");
  await page.keyboard.press("ArrowRight");
  assert.ok((await view(page))[0] > closer[0], "arrows move");
  await page.keyboard.press("0");
  assert.deepEqual(await view(page), before);

  // By pointer: a movement is not a click.
  const area = await page.locator("#map").boundingBox();
  const node = await page.locator("#map a", { hasText: "desk" }).first().boundingBox();
  await page.mouse.move(node.x + 20, node.y + 8);
  await page.mouse.down();
  await page.mouse.move(node.x + 80, node.y + 40, { steps: 4 });
  await page.mouse.up();
  assert.ok((await view(page))[0] < before[0], "dragging moves the map");
  assert.equal(new URL(page.url()).pathname, "/");
  await page.keyboard.down("Control");
  await page.mouse.move(area.x + 100, area.y + 100);
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  assert.ok((await view(page))[2] < before[2], "the wheel zooms");
  await page.getByRole("button", { name: "Fit" }).click();
  assert.deepEqual(await view(page), before);

  // A query highlights what it finds; one that is wrong says so and dims nothing.
  await page.getByLabel("Query").fill("(a:Agent { name: 'desk' })-[:calls]->(t:Tool { effect: 'reads' })");
  await untilLit(page, ["desk", "shop/order"]);
  assert.equal(await page.locator("#map .hit").count(), 2);
  await page.getByLabel("Query").fill("(a:Agnt)");
  await page.waitForFunction(() => document.querySelector("#found").textContent.includes("Agnt"));
  assert.equal(await page.locator("#map .dim").count(), 0);
  await page.getByLabel("Query").fill("");
  await page.waitForFunction(() => document.querySelector("#found").textContent === "");

  // Filters.
  await page.locator("[name=effect]").selectOption("reads");
  await untilLit(page, ["desk", "shop/order"]);
  await page.locator("[name=effect]").selectOption("");
  await page.locator("[name=permission]").selectOption("deny");
  await untilLit(page, ["desk", "shop/wipe"]);
  await page.locator("[name=permission]").selectOption("");
  await page.locator("[name=model]").selectOption("OpenAI/gpt-4o-mini");
  await page.waitForFunction(() => document.querySelector("#map .node.dim") && document.querySelector("#map .node[data-name='shop/refund']:not(.dim)"));
  await shoot(page, "map-filtered");
  await page.locator("[name=model]").selectOption("");
  await page.getByLabel("Problems only").check();
  await page.waitForFunction(() => document.querySelectorAll("#map .hit").length > 0);
  assert.ok((await page.locator("#found").textContent()).endsWith(` of ${await page.locator("#map .node").count()}`));
  await page.getByLabel("Problems only").uncheck();
  await page.getByLabel("Search").fill("shop/ref");
  await page.waitForFunction(() => document.querySelectorAll("#map .hit").length === 1);
  await judge(page);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("href")), "/studio/tools/shop%2Frefund");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/studio/tools/shop%2Frefund");
  assert.ok((await page.locator("main").innerText()).includes("asks first"));

  const download = await page.request.get("/studio/map.svg");
  assert.ok((await download.text()).includes("<title id=\"graph-title\">Project</title>"));

  // Without JavaScript everything can be read.
  const plain = await open({ javaScriptEnabled: false });
  const still = await plain.newPage();
  await still.goto("/");
  assert.ok(await still.locator("#map svg").isVisible());
  assert.ok(await still.getByRole("table").getByRole("link", { name: "desk", exact: true }).isVisible());
});
