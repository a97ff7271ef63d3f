// Files of a message: chosen, pasted or dropped, and shown until they are sent.
import { notify, request } from "./live.js";

/** The maximum size of a file, and of all files of a message, in bytes. */
const MAX_FILE = 20 * 1024 * 1024;
const MAX_MESSAGE = 20 * 1024 * 1024;
/** The maximum number of files of a message. */
const MAX_FILES = 20;

/**
 * A file that was read, and the part of a message that it is.
 * @typedef {{ name: string, size: number, part: object }} Attached
 */

/**
 * Reads a file as Base64.
 * @param {File} file
 * @returns {Promise<string>}
 */
function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("the file cannot be read")));
    reader.readAsDataURL(file);
  });
}

/**
 * Reads the files of a message that was sent.
 * @param {Element | null} turn
 * @returns {Promise<File[]>}
 */
export function readSent(turn) {
  const items = /** @type {HTMLElement[]} */ ([...(turn?.querySelectorAll(".user .attachments li") ?? [])]);
  return Promise.all(
    items.map(async (item) => {
      const response = await request(item.querySelector("a")?.href ?? "");
      const content = await response.blob();
      return new File([content], item.dataset.name ?? "file", { type: content.type.replace(/;.*/, "") });
    }),
  );
}

export class Attachments {
  /** @type {Attached[]} */
  #files = [];
  #reading = 0;

  /** @param {{ place: HTMLElement, list: HTMLElement, picker: HTMLInputElement, button: HTMLButtonElement, message: HTMLTextAreaElement }} elements */
  constructor({ place, list, picker, button, message }) {
    this.list = list;
    this.button = button;
    button.addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      void this.add([...(picker.files ?? [])]);
      // The same file can be chosen again.
      picker.value = "";
      message.focus();
    });
    message.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      void this.add(files);
    });
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
    place.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      place.classList.add("dropping");
    });
    place.addEventListener("dragleave", (event) => {
      if (!(event.relatedTarget instanceof Node) || !place.contains(event.relatedTarget)) place.classList.remove("dropping");
    });
    place.addEventListener("drop", (event) => {
      place.classList.remove("dropping");
      if (!hasFiles(event)) return;
      event.preventDefault();
      void this.add([...(event.dataTransfer?.files ?? [])]);
    });
  }

  get isEmpty() {
    return this.#files.length === 0;
  }

  get isReading() {
    return this.#reading > 0;
  }

  /** @param {File[]} files */
  async add(files) {
    this.#reading += 1;
    for (const file of files) {
      const size = this.#files.reduce((sum, one) => sum + one.size, file.size);
      if (file.size > MAX_FILE || size > MAX_MESSAGE) {
        notify(`${file.name} is too large: the files of a message may have 20 MB.`);
      } else if (this.#files.length >= MAX_FILES) {
        notify(`A message may have ${MAX_FILES} files.`);
        break;
      } else {
        try {
          const value = await read(file);
          const mimeType = file.type || "application/octet-stream";
          const type = mimeType.startsWith("image/") ? "image" : "document";
          const part = { type, source: { type: "data", value, mimeType }, metadata: { filename: file.name } };
          this.#files.push({ name: file.name, size: file.size, part });
        } catch (error) {
          notify(`${file.name}: ${error instanceof Error ? error.message : error}`);
        }
      }
    }
    this.#reading -= 1;
    this.#show();
  }

  /** Returns the files, and forgets them. */
  take() {
    const files = this.#files;
    this.#files = [];
    this.#show();
    return files;
  }

  /**
   * Adds files that could not be sent.
   * @param {Attached[]} files
   */
  restore(files) {
    this.#files = [...files, ...this.#files];
    this.#show();
  }

  #show() {
    const items = this.#files.map((file) => {
      const item = document.createElement("li");
      const chip = document.createElement("span");
      chip.className = "chip";
      chip.textContent = file.name;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.addEventListener("click", () => {
        this.#files = this.#files.filter((one) => one !== file);
        this.#show();
        this.button.focus();
      });
      chip.append(remove);
      item.append(chip);
      return item;
    });
    this.list.replaceChildren(...items);
  }
}
