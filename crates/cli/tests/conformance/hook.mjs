// Lets the suite run with Node.js 18 and 20. It imports `globSync` from `fs`, which Node.js has since version 22, for commands
// that the tests do not run, and expects globals that Node.js 18 does not have.
import { File } from 'node:buffer';
import { webcrypto } from 'node:crypto';
import { register } from 'node:module';

globalThis.File ??= File;
globalThis.crypto ??= webcrypto;

const hooks = `export async function resolve(specifier, context, next) {
  return specifier === 'fs' && context.parentURL?.includes('/conformance/')
    ? { url: 'data:text/javascript,export * from "node:fs"; export const globSync = undefined', shortCircuit: true }
    : next(specifier, context);
}`;
register('data:text/javascript,' + encodeURIComponent(hooks));
