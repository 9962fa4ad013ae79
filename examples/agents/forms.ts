/** The two calls that every recipe makes. `URL` and `KEY` are the service's address and an API key. */
const { URL: server = 'http://localhost:8080', KEY = '' } = process.env;

/** Asks a person one question. The same `id` asks once, however often it is called. */
export async function ask(id: string, label: string, callback?: { url: string }): Promise<Session> {
  const question = { label, id: 'yes', type: 'boolean', required: true };
  const body = { definition: { fields: [question] }, allow_decline: true, expires_in: 86_400, callback };
  return (await call('POST', '/v1/sessions', body, { 'idempotency-key': id })).session;
}

/** Waits until a session has ended. Only the outcome `submitted` is an answer. */
export async function ended(sessionId: string): Promise<Ended> {
  for (;;) {
    const { session, submission } = await call('GET', `/v1/sessions/${sessionId}?wait=30`);
    if (session.outcome !== null) return { outcome: session.outcome, yes: submission?.answers.yes === true };
  }
}

async function call(method: string, path: string, body?: object, headers?: object): Promise<Reply> {
  const response = await fetch(server + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return (await response.json()) as Reply;
}

export type Session = { id: string; url: string; outcome: string | null };
export type Ended = { outcome: string; yes: boolean };
type Reply = { session: Session; submission?: { answers: { yes?: boolean } } };
