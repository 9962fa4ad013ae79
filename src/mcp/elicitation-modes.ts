import { z } from 'zod';
import type { ElicitationModes, Sealer } from './tool.ts';

/** How a client that declares these capabilities can ask its user; undefined if it can't. */
export function elicitationModes(capabilities: unknown): ElicitationModes | undefined {
  const { data } = declared.safeParse(capabilities);
  if (data === undefined) return undefined;
  const { form, url } = data.elicitation;
  // An empty object means the form, which was there first.
  return { form: form !== undefined || url === undefined, url: url !== undefined };
}

/**
 * What a client of before 2026-07-28 says once, when it begins, as the id of its session: it repeats that id with each
 * message, so that nothing is kept here and any process can serve the next one. Undefined if nothing needs to be known.
 */
export function sessionIdFor(body: unknown, sealer: Sealer): string | undefined {
  const { data } = initialize.safeParse(body);
  const modes = data && elicitationModes(data.params.capabilities);
  if (modes === undefined) return undefined;
  return sealer.seal(JSON.stringify({ purpose: PURPOSE, modes }));
}

/** How the client of a session can ask its user; undefined if its id is none of this service. */
export function modesOfSession(id: string | undefined, sealer: Sealer): ElicitationModes | undefined {
  if (id === undefined) return undefined;
  try {
    return opened.parse(JSON.parse(sealer.open(id))).modes;
  } catch {
    // Sealed with a secret key that has changed since, for example. The client then gets the link as text.
    return undefined;
  }
}

const PURPOSE = 'mcp_client';

const declared = z.looseObject({
  elicitation: z.looseObject({ form: z.looseObject({}).optional(), url: z.looseObject({}).optional() }),
});

/** Choices have titles, and links can be opened, since this revision. */
const FIRST_VERSION = '2025-11-25';

const initialize = z.object({
  method: z.literal('initialize'),
  params: z.object({
    protocolVersion: z.string().refine((version) => version >= FIRST_VERSION),
    capabilities: z.unknown(),
  }),
});

const opened = z.object({
  purpose: z.literal(PURPOSE),
  modes: z.object({ form: z.boolean(), url: z.boolean() }),
});
