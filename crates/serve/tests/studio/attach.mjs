// Files in a conversation: chosen, pasted and dropped, removed by keyboard, and shown from the store.
import { assert, judge, scenario, shoot } from "./browser.mjs";

const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="console.error(\'ran\')"><script>console.error("ran")</script></svg>');

/** Gives files to the page as a paste or a drop does. */
function transfer(page, target, kind, name, type, bytes) {
  return page.evaluate(
    ([target, kind, name, type, bytes]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], name, { type }));
      const options = { bubbles: true, cancelable: true };
      const event = kind === "paste" ? new ClipboardEvent(kind, { ...options, clipboardData: data }) : new DragEvent(kind, { ...options, dataTransfer: data });
      document.querySelector(target).dispatchEvent(event);
      return event.defaultPrevented;
    },
    [target, kind, name, type, [...bytes]],
  );
}

await scenario(async ({ open }) => {
  const context = await open({ viewport: { width: 1280, height: 800 }, allow: [/status of 400/] });
  const page = await context.newPage();
  const chips = page.locator("#attachments .chip");
  const names = () => chips.allTextContents().then((all) => all.map((text) => text.replace("×", "")));

  // The button opens the dialog of the browser, also by keyboard.
  await page.goto("/studio/talk?agent=greeter");
  const dialog = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Attach" }).focus();
  await page.keyboard.press("Enter");
  const hostile = '<img src=x onerror=alert(1)>.txt';
  await (await dialog).setFiles([
    { name: "photo.png", mimeType: "image/png", buffer: png },
    { name: hostile, mimeType: "text/plain", buffer: Buffer.from("notes") },
  ]);
  await chips.nth(1).waitFor();
  assert.deepEqual(await names(), ["photo.png", hostile]);
  await judge(page);
  await shoot(page, "talk-attach");
  await page.getByRole("button", { name: `Remove ${hostile}` }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#attachments .chip").length === 1);
  assert.equal(await page.evaluate(() => document.activeElement.id), "attach");

  // Pasted and dropped. Text is pasted as text.
  assert.equal(await transfer(page, "#message", "paste", "pasted.svg", "image/svg+xml", svg), true);
  assert.equal(await transfer(page, "#conversation", "dragover", "x", "", []), true);
  assert.ok(await page.locator(".talk.dropping").count());
  assert.equal(await transfer(page, "#conversation", "drop", "dropped.txt", "text/plain", Buffer.from("dropped")), true);
  await chips.nth(2).waitFor();
  assert.deepEqual(await names(), ["photo.png", "pasted.svg", "dropped.txt"]);
  assert.equal(await page.locator(".talk.dropping").count(), 0);

  // Sent, and shown from the store: an image as an image, everything else as a download.
  await page.getByLabel("Message").focus();
  await page.keyboard.type("What is this?");
  await page.keyboard.press("Enter");
  await page.locator(".turn .foot").waitFor();
  assert.equal(await chips.count(), 0);
  const image = page.locator(".turn .attachments img");
  assert.equal(await image.getAttribute("alt"), "photo.png");
  await page.waitForFunction(() => document.querySelector(".turn .attachments img").naturalWidth === 1);
  assert.equal(await page.locator(".turn .attachments a.chip[download]").count(), 2);
  assert.match(await page.locator(".turn .attachments").textContent(), /pasted\.svg \(text\/plain, \d+ bytes\)/);
  await judge(page);
  await shoot(page, "talk-attached");
  await page.reload();
  await page.waitForFunction(() => document.querySelector(".turn .attachments img")?.naturalWidth === 1);

  // A file alone is a message.
  await page.locator("#files").setInputFiles([{ name: "alone.png", mimeType: "image/png", buffer: png }]);
  await chips.first().waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".turn").nth(1).locator(".foot").waitFor();
  assert.equal(await page.locator(".turn").nth(1).locator(".bubble").count(), 0);

  // Undoing a message gives its files back, to send them again.
  await page.getByRole("button", { name: "Undo" }).click();
  await chips.first().waitFor();
  assert.deepEqual(await names(), ["alone.png"]);
  assert.equal(await page.locator(".turn").count(), 1);
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".turn .attachments img")[1]?.naturalWidth === 1);
  await page.locator(".turn").nth(1).locator(".foot").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await chips.first().waitFor();
  await page.getByRole("button", { name: "Remove alone.png" }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await chips.nth(2).waitFor();
  assert.deepEqual(await names(), ["photo.png", "pasted.svg", "dropped.txt"]);
  assert.equal(await page.getByLabel("Message").inputValue(), "What is this?");
  for (const name of await names()) await page.getByRole("button", { name: `Remove ${name}` }).click();
  await page.getByLabel("Message").fill("");

  // What the server refuses stays, with the reason.
  await page.locator("#files").setInputFiles([{ name: "a.zip", mimeType: "application/zip", buffer: Buffer.from("PK\u0003\u0004\u0000") }]);
  await chips.first().waitFor();
  await page.getByLabel("Message").focus();
  await page.keyboard.type("And this?");
  await page.keyboard.press("Enter");
  await page.getByText("which models do not read").first().waitFor();
  await chips.first().waitFor();
  assert.deepEqual(await names(), ["a.zip"]);
  assert.equal(await page.getByLabel("Message").inputValue(), "And this?");
});
