import { type Route, route } from './route.ts';
import { durationOf, okReply } from './schemas/common.ts';
import { createKeyBody, keyCreatedReply, keyOf, keysReply } from './schemas/keys.ts';

const tag = 'Keys';

/** The routes of API keys. */
export const keyRoutes: Route[] = [
  route('post', '/v1/keys', {
    name: 'createKey',
    tag,
    summary: 'Make an API key',
    access: 'keys:write',
    body: createKeyBody,
    call: ({ keys }) => keys.createKey,
    input: ({ body }) => ({
      name: body.name,
      scopes: body.scopes,
      project: body.project ?? '',
      expiresIn: durationOf(body.expires_in),
    }),
    refused: ({ keys }, _id, options) => keys.createKey({}, options),
    status: 201,
    reply: keyCreatedReply,
    answer: ({ key, secret }) => ({ key: keyOf(key), secret }),
  }),
  route('get', '/v1/keys', {
    name: 'listKeys',
    tag,
    summary: 'List the project’s API keys',
    access: 'keys:write',
    call: ({ keys }) => keys.listKeys,
    input: () => ({}),
    reply: keysReply,
    answer: ({ keys }) => ({ keys: keys.map(keyOf) }),
  }),
  route('delete', '/v1/keys/:id', {
    name: 'deleteKey',
    tag,
    summary: 'Revoke an API key',
    access: 'keys:write',
    call: ({ keys }) => keys.deleteKey,
    input: ({ id }) => ({ keyId: id }),
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
];
