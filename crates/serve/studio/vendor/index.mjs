// What pages use of the vendored libraries, under one name each.
import { h } from "./preact.mjs";
import htm from "./htm.mjs";
import "./signals.mjs";

export { h, render, Fragment } from "./preact.mjs";
export { useState, useEffect, useRef, useLayoutEffect } from "./hooks.mjs";
export { signal, computed, effect, batch } from "./signals-core.mjs";
export const html = htm.bind(h);
