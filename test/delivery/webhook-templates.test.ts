import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BodyTooLarge, renderTemplate } from '../../src/delivery/webhook/body.ts';
import { oneEngine } from '../support/database.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { verifySignature } from '../support/verify-signature.ts';

const event = {
  id: 'evt_1',
  event: 'submission.created',
  data: { answers: { n: 7, tags: ['a', 'b'], note: 'Hi "you"\nthere', no: null }, metadata: {} },
};
const rendered = (template: object) => JSON.parse(renderTemplate(template as never, JSON.stringify(event)));

describe('renderTemplate', () => {
  it('takes the JSON value for a string that is one name, and words within a text', () => {
    expect(
      rendered({
        number: '{{data.answers.n}}',
        list: '{{ data.answers.tags }}',
        whole: '{{data.answers}}',
        text: 'Number {{data.answers.n}}: {{data.answers.note}}',
        kept: [true, null, 1.5, { deep: '{{event}}' }, 'a {brace} }'],
      }),
    ).toEqual({
      number: 7,
      list: ['a', 'b'],
      whole: event.data.answers,
      text: 'Number 7: Hi "you"\nthere',
      kept: [true, null, 1.5, { deep: 'submission.created' }, 'a {brace} }'],
    });
  });

  it('gives null for what the event lacks, or no words within a text', () => {
    const lacking = { alone: '{{data.answers.other}}', text: '<{{data.answers.other}}|{{data.answers.no}}>' };

    expect(rendered(lacking)).toEqual({ alone: null, text: '<|>' });
    expect(rendered({ a: '{{data.answers.constructor}}' })).toEqual({ a: null });
  });

  it('cuts long words, and gives up on what becomes too large', () => {
    const long = JSON.stringify({ data: { answers: { note: 'x'.repeat(200_000) } } });
    const text = JSON.parse(renderTemplate({ t: 'Says {{data.answers.note}}' }, long)).t;
    const often = { t: Array.from({ length: 100 }, () => '{{data.answers}}') };

    expect(text).toHaveLength('Says '.length + 1000);
    expect(() => renderTemplate(often, long)).toThrow(BodyTooLarge);
  });
});

/** What each chat refuses, and what of a text it would make a link, a mention or markup. */
const chats: Record<string, Chat> = {
  Slack: {
    accepts: ({ text, blocks }) =>
      typeof text === 'string' &&
      text.length <= 40_000 &&
      Array.isArray(blocks) &&
      blocks.every(
        (block) =>
          block.type === 'section' &&
          ['mrkdwn', 'plain_text'].includes(block.text.type) &&
          block.text.text.length >= 1 &&
          block.text.text.length <= 3000,
      ),
    texts: ({ text, blocks }) => [
      text,
      ...blocks.map((block: { text: { text: string } }) => block.text.text),
    ],
    answer: [200, 'ok'],
  },
  Mattermost: {
    accepts: ({ text, attachments }) =>
      (typeof text === 'string' && text !== '' && text.length <= 16_383) || Array.isArray(attachments),
    texts: ({ text }) => [text],
    answer: [200, 'ok'],
  },
  Discord: {
    accepts: ({ content, allowed_mentions: mentions }) =>
      typeof content === 'string' &&
      content.length >= 1 &&
      content.length <= 2000 &&
      Array.isArray(mentions?.parse) &&
      mentions.parse.every((kind: unknown) => ['roles', 'users', 'everyone'].includes(String(kind))),
    texts: ({ content }) => [content],
    answer: [204, ''],
  },
  Teams: {
    accepts: ({ type, attachments }) =>
      type === 'message' &&
      attachments.length === 1 &&
      attachments[0].contentType === 'application/vnd.microsoft.card.adaptive' &&
      attachments[0].content.type === 'AdaptiveCard' &&
      /^1\.[0-5]$/.test(attachments[0].content.version) &&
      attachments[0].content.body.every(
        (part: { type: string; text: unknown }) => part.type === 'TextBlock' && typeof part.text === 'string',
      ) &&
      JSON.stringify(attachments).length <= 28_000,
    texts: ({ attachments }) => attachments[0].content.body.map((part: { text: string }) => part.text),
    answer: [202, ''],
  },
};

/** As Slack, Markdown and Adaptive Cards read it. */
const active =
  /https?:\/\/|www\.|\[[^\]]*\]\(|<[^>]*>|(?:^|[^\w])@(?:everyone|here|channel|ada)|`|~~|\*\*hostile|_hostile_|^#|[a-z]\.(?:example|com)\b/im;

const hostile = `@everyone @here <!channel> <@U1> [x](https://evil.example) <https://evil.example|x>
# head **hostile** _hostile_ ~~x~~ \`x\` www.evil.com ada@evil.com ![i](//evil.example/i.png)
${'long '.repeat(400)}`;

/** The templates of docs/webhooks.md, by the chat that they are for: of answers, or of questions. */
function documented(of = /^\*\*(\w+)\*\*[^\n]*\n\n```json\n(.*?)\n```/gms): Record<string, object> {
  const text = readFileSync(join(import.meta.dirname, '../../docs/webhooks.md'), 'utf8');
  const found = text.matchAll(of);
  return Object.fromEntries([...found].map(([, name, json]) => [name, JSON.parse(String(json))]));
}

describe.each(oneEngine('pglite'))('webhooks with a template on %s', (engine) => {
  it('sends what the documented templates make, signed, to receivers that check as the chats do', async () => {
    await using service = await startService({ engine });
    const secret = 'a secret of a chat';
    await using receiver = await startReceiver(({ path, body }, response) => {
      const chat = chats[path.slice(1)];
      const accepted = chat?.accepts(JSON.parse(body)) === true;
      const [status, text] = accepted && chat ? chat.answer : [400, 'invalid_payload'];
      response.writeHead(status).end(text);
    });
    const templates = documented();
    expect(Object.keys(templates)).toEqual(Object.keys(chats));
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'email', type: 'text' },
        { id: 'message', type: 'textarea' },
      ],
    });
    const made: string[] = [];
    for (const [name, template] of Object.entries(templates)) {
      const url = `${receiver.url}/${name}`;
      const events = ['submission.created'];
      const { json } = await service.post('/v1/webhooks', {
        url,
        events,
        secret,
        template,
        form_id: form.id,
      });
      made.push(json.webhook.id);
    }

    for (const answers of [
      { email: 'Ada', message: 'Two words' },
      { email: hostile, message: hostile },
      {},
    ]) {
      await service.post(`/api/forms/${form.id}/submissions`, { answers });
    }
    await receiver.expectRequests(made.length * 3);

    for (const id of made) {
      await until(async () => {
        const { json } = await service.get(`/v1/webhooks/${id}/deliveries?status=delivered`);
        return json.deliveries.length === 3;
      });
    }
    expect(receiver.received).toHaveLength(made.length * 3);
    for (const { path, body, headers } of receiver.received) {
      const header = String(headers['x-service-signature']);
      expect(verifySignature({ header, body, secret, now: Date.now() })).toBe(true);
      const texts = chats[path.slice(1)]?.texts(JSON.parse(body)) ?? [];
      if (body.includes('Two words')) expect(texts.join()).toMatch(/Ada|Two words/);
      for (const text of texts) if (body.includes('hostile')) expect(text).not.toMatch(active);
    }
  });

  it('tells channels of questions, with no link but to the page', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver(({ path, body }, response) => {
      const chat = chats[path.slice(1)];
      const accepted = chat?.accepts(JSON.parse(body)) === true;
      const [status, text] = accepted && chat ? chat.answer : [400, 'invalid_payload'];
      response.writeHead(status).end(text);
    });
    const templates = documented(/^\*\*A question in (\w+)\*\*[^\n]*\n\n```json\n(.*?)\n```/gms);
    expect(Object.keys(templates)).toEqual(Object.keys(chats));
    const url = new Map<string, string>();
    for (const [name, template] of Object.entries(templates)) {
      const hook = { url: `${receiver.url}/${name}`, events: ['session.notified'], template };
      const { json } = await service.post('/v1/webhooks', hook);
      for (const message of ['The tests have passed.', hostile.slice(0, 2000)]) {
        const definition = {
          name: message === hostile.slice(0, 2000) ? hostile.slice(0, 90) : 'Deploy?',
          fields: [{ label: 'OK?' }],
        };
        const notify = { webhook_id: json.webhook.id, message };
        const made = await service.post('/v1/sessions', { definition, notify });
        expect(made.json.error).toBeUndefined();
        await until(
          async () => (await service.get(`/v1/sessions/${made.json.session.id}`)).json.session.notify.sent_at,
        );
        url.set(made.json.session.id, made.json.session.url);
      }
    }

    expect(receiver.received).toHaveLength(8);
    for (const { path, body } of receiver.received) {
      const links = [...url.values()].filter((link) => body.includes(link));
      expect(links).toHaveLength(1);
      const texts = chats[path.slice(1)]?.texts(JSON.parse(body)) ?? [];
      for (const text of texts) expect(text.replaceAll(String(links[0]), '')).not.toMatch(active);
      if (body.includes('passed')) expect(texts.join()).toContain('The tests have passed.');
    }
  });

  it('keeps, changes and removes a template, and refuses one that can not be rendered', async () => {
    await using service = await startService({ engine, env: { DELIVERY_WORKERS: '0' } });
    const url = 'https://example.com/hook';
    const template = { text: 'From {{data.answers.email}}' };
    const made = await service.post('/v1/webhooks', { url, events: ['submission.created'], template });
    const path = `/v1/webhooks/${made.json.webhook.id}`;

    expect(made.json.webhook.template).toEqual(template);
    const changed = await service.call('PATCH', path, { template: { id: '{{id}}' } });
    expect(changed.json.webhook.template).toEqual({ id: '{{id}}' });
    const other = await service.call('PATCH', path, { active: true });
    expect(other.json.webhook.template).toEqual({ id: '{{id}}' });
    const refused = await service.call('PATCH', path, { template: { a: ['{{data.answer.x}}'] } });
    expect(refused.status).toBe(422);
    expect(refused.json.error.details).toMatchObject([
      {
        path: 'template.a.0',
        code: 'invalid_string',
        message: 'Unknown name "data.answer.x". Did you mean "data.answers"?',
      },
    ]);
    const removed = await service.call('PATCH', path, { template: null });
    expect(removed.json.webhook).not.toHaveProperty('template');
  });

  it('renders at each attempt, with the event of the first', async () => {
    await using service = await startService({ engine, env: { WEBHOOK_RETRY_SCHEDULE: '0,3600' } });
    await using receiver = await startReceiver((hit, response) =>
      response.writeHead(hit.body.includes('"second"') ? 204 : 500).end(),
    );
    const form = await service.givenPublishedForm();
    const made = await service.post('/v1/webhooks', {
      url: receiver.url,
      events: ['submission.created'],
      form_id: form.id,
      template: { version: 'first', event: '{{id}}' },
    });
    const path = `/v1/webhooks/${made.json.webhook.id}`;
    await service.post(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } });
    await receiver.expectRequests(1);
    await service.call('PATCH', path, { template: { version: 'second', event: '{{id}}' } });
    // Until the first attempt is recorded the delivery is due again soon, as its worker may be gone.
    const later = "due_at > now() + interval '30 minutes'";
    await until(async () => {
      const rows = await service.database.select(`select from delivery_queue where ${later}`);
      return rows.length === 1;
    });
    await service.database.execute('update delivery_queue set due_at = now()');

    const [first, second] = await receiver.expectRequests(2);

    expect(JSON.parse(String(second?.body))).toEqual({
      version: 'second',
      event: JSON.parse(String(first?.body)).event,
    });
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  });

  it('does not send what a template makes too large, and says why', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const form = await service.givenPublishedForm({
      fields: [{ id: 'message', type: 'textarea', maxLength: 10_000 }],
    });
    const made = await service.post('/v1/webhooks', {
      url: receiver.url,
      events: ['submission.created'],
      form_id: form.id,
      template: { often: Array.from({ length: 300 }, () => '{{data.answers}}') },
    });
    await service.post(`/api/forms/${form.id}/submissions`, { answers: { message: 'x'.repeat(9000) } });

    const path = `/v1/webhooks/${made.json.webhook.id}/deliveries?status=failed`;
    await until(async () => (await service.get(path)).json.deliveries.length === 1);

    const [delivery] = (await service.get(path)).json.deliveries;
    expect(delivery).toMatchObject({
      error: 'The template makes a body of more than 1 MiB.',
      attempt_count: 0,
    });
    expect(receiver.received).toEqual([]);
  });
});

/** Looked at by the chat's own rules. */
type Body = ReturnType<typeof JSON.parse>;
type Chat = { accepts(body: Body): boolean; texts(body: Body): string[]; answer: [number, string] };
