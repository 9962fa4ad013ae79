import { registerHooks } from 'node:module';

// The generators print TypeScript by the compiler API of TypeScript 5 and 6, which 7 does not have.
const withApi = `data:text/javascript,${encodeURIComponent(`
import { createRequire } from 'node:module';
export default createRequire(${JSON.stringify(import.meta.url)})('@ts-morph/common').ts;
`)}`;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript' ? { url: withApi, shortCircuit: true } : next(specifier, context),
});
