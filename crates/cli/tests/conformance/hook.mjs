// The suite imports `globSync` from `fs`, which Node.js has since version 22. It is used only by commands that the tests do
// not run, so older versions get a module without it.
import { register } from 'node:module';

const hooks = `export async function resolve(specifier, context, next) {
  return specifier === 'fs' && context.parentURL?.includes('/conformance/')
    ? { url: 'data:text/javascript,export * from "node:fs"; export const globSync = undefined', shortCircuit: true }
    : next(specifier, context);
}`;
register('data:text/javascript,' + encodeURIComponent(hooks));
