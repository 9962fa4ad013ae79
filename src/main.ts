import { enableCompileCache } from 'node:module';

// Before anything else is loaded: what an earlier start compiled saves a fifth of a second.
enableCompileCache();
await import('./serve.ts');
