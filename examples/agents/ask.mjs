import { once } from 'node:events';
import { createServer } from 'node:http';

// node ask.mjs: asks once, however often it starts, since the idempotency key is the same, and waits for the callback.
// Anybody can call the port, so the answer is read with the key.
const { URL: server, KEY, EMAIL: email, PORT } = process.env;
const definition = { fields: [{ id: 'yes', label: 'May I deploy 4.2?', type: 'boolean', required: true }] };
const [notify, callback] = [{ email, remind_after: [3600] }, { url: `http://localhost:${PORT}` }];
const body = JSON.stringify({ definition, notify, callback, allow_decline: true });
const authorization = `Bearer ${KEY}`;
const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': 'deploy 4.2' };
const call = async (path, init) => (await fetch(`${server}/v1/sessions${path}`, { headers, ...init })).json();
const called = once(createServer((_, response) => response.end()).listen(PORT), 'request');
const { session } = await call('', { method: 'POST', body });
if (session.outcome === null) await called;
const ended = await call(`/${session.id}`);
console.log(ended.session.outcome, ended.submission?.answers.yes);
process.exit();
