import { describe, expect, it } from 'vitest';
import { AFTER, Days, FORM, HEIR, linkOf, MARK, OWNER } from './given.ts';
import { rules } from './index.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './rule.ts';

const SUB = 'sub_1111111111';
const OTHER = 'sub_2222222222';
const AT = 10 * SECOND_MS;
const given = (settings?: object, delivery?: object) => new Days().form(settings, delivery).webhook();
const erased = (days: Days, value: string, at = AFTER) =>
  days.call(at, 'POST', '/v1/erasures', { body: { value }, json: { next_cursor: null } });

describe('the ledger finds nothing', () => {
  it.each<[string, Days]>([
    ['in days in which all was kept', given().submission(AT)],
    [
      'if a lost reply is repeated under the same key',
      given()
        .submission(AT - SECOND_MS, { status: 'none' })
        .submission(AT),
    ],
    ['if a mail comes again after its reply was lost', lostMail()],
    [
      'if a receiver refused eight times',
      refused(
        given()
          .submission(AT, { isSilent: true })
          .told(AT + 2 * SECOND_MS),
        8,
      ),
    ],
    [
      'if the recipient was refused for good',
      given()
        .submission(AT, { isSilent: true })
        .hit(AT + SECOND_MS)
        .mail(AT + SECOND_MS, { step: 'to', answered: 550 }),
    ],
    [
      'if what was deleted is gone',
      given().submission(AT).call(AFTER, 'DELETE', `/v1/submissions/${SUB}`).gone(),
    ],
    [
      'if what was erased is gone',
      erased(
        given()
          .submission(AT, { answers: { email: 'Ada@x.example' } })
          .gone(),
        'ada@x.example',
      ),
    ],
    [
      'if a secret signs on when the rotation that would have ended it is replaced by a later one',
      given()
        .submission(AT)
        .call(AFTER, 'POST', '/v1/webhooks/wh_1/rotate-secret', {
          body: { effective_in: 600 },
          json: { secret: 'a planned secret' },
        })
        .call(AFTER + MINUTE_MS, 'POST', '/v1/webhooks/wh_1/rotate-secret', {
          body: { effective_in: 86_400 },
          json: { secret: 'a later secret' },
        })
        .hit(AFTER + HOUR_MS),
    ],
    ['if what has expired is gone', given({ retentionDays: 2 }).submission(AT).gone()],
    [
      'if a webhook is called just before it is known to be gone, and after it was turned on again',
      given()
        .submission(AT, { isSilent: true })
        .hit(AT + SECOND_MS, { answered: 410 })
        .told(AT + SECOND_MS)
        .call(AFTER, 'PATCH', '/v1/webhooks/wh_1', { body: { active: true } })
        .hit(AFTER + MINUTE_MS),
    ],
    [
      'if the mailed address was stopped before',
      stopped(
        given()
          .submission(AT, { isSilent: true })
          .hit(AT + SECOND_MS),
        AT + 500,
      ),
    ],
    [
      'if what was deleted is sent again under its key',
      given()
        .submission(AT)
        .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
        .gone()
        .submission(2 * AFTER, { id: OTHER }),
    ],
    ['if the submission of a session went with its form', deletedWithSession()],
    [
      'if a form takes as many as it may',
      given({ maxSubmissions: 1 }).submission(AT).submission(AFTER, { status: 410, mark: 'mark-0000000002' }),
    ],
    [
      'if a form takes another one for one that was deleted',
      given({ maxSubmissions: 1 })
        .submission(AT)
        .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
        .gone()
        .submission(2 * AFTER, { id: OTHER, mark: 'mark-0000000002' }),
    ],
  ])('%s', (_, days) => {
    expect(days.findings()).toEqual([]);
  });
});

describe('the ledger finds', () => {
  const cases: [rule: string, reason: string, days: Days][] = [
    [
      'one submission per idempotency key',
      'it made two submissions',
      given().submission(AT).submission(AFTER, { id: OTHER, onlyCall: true }),
    ],
    [
      'one submission per idempotency key',
      'it made two submissions',
      given()
        .submission(AT - SECOND_MS, { status: 'none' })
        .submission(AT)
        .hit(AFTER, { id: OTHER }),
    ],
    ['acknowledged is kept', 'it is gone', given().submission(AT).gone()],
    [
      'acknowledged is kept',
      'gone before its retention time',
      given({ retentionDays: 2 })
        .submission(AT)
        .gone()
        .call(DAY_MS, 'GET', `/v1/submissions/${SUB}`, { status: 404 }),
    ],
    [
      'acknowledged is kept',
      'gone before its retention time',
      given({ retentionDays: 2 })
        .submission(AT)
        .gone()
        .hit(DAY_MS, { event: 'submission.deleted', eventId: 'evt_d' }),
    ],
    [
      'removed is not read again',
      'kept beyond its retention time',
      given({ retentionDays: 2 })
        .submission(AT)
        .gone()
        .call(3 * DAY_MS, 'GET', `/v1/submissions/${SUB}`, { json: { note: MARK } }),
    ],
    [
      'removed is not read again',
      'though it was deleted',
      given()
        .submission(AT)
        .gone()
        .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
        .call(2 * AFTER, 'GET', `/v1/submissions/${SUB}`, { json: { note: MARK } }),
    ],
    ['open takes all', 'refused with 404', given().submission(AT, { status: 404 })],
    [
      'closed takes nothing',
      'it took a submission',
      given().call(AT, 'POST', `/v1/forms/${FORM}/archive`).submission(AFTER),
    ],
    [
      'limits are exact',
      'more than maxSubmissions',
      given({ maxSubmissions: 1 }).submission(AT).submission(AFTER, { id: OTHER, mark: 'mark-0000000002' }),
    ],
    [
      'limits are exact',
      'fewer than maxSubmissions',
      given({ maxSubmissions: 2 }).submission(AT).submission(AFTER, { status: 410, mark: 'mark-0000000002' }),
    ],
    ['failures are transient', 'answered 500', given().call(AT, 'GET', '/v1/forms', { status: 500 })],
    [
      'one event id',
      'another id for the same event',
      given().submission(AT).hit(AFTER, { eventId: 'evt_2' }),
    ],
    [
      'one event id',
      'another body under the same id',
      given().submission(AT).hit(AFTER, { mark: 'mark-0000000002' }),
    ],
    [
      'signatures are valid',
      'signed with another secret',
      given().submission(AT).hit(AFTER, { secret: 'another' }),
    ],
    [
      'signatures are valid',
      'nobody registered the receiver',
      given().submission(AT).hit(AFTER, { url: 'http://no.example/' }),
    ],
    [
      'signatures are valid',
      'signed with a secret after its time',
      given()
        .submission(AT)
        .call(AFTER, 'POST', '/v1/webhooks/wh_1/rotate-secret', {
          body: {},
          json: { secret: 'a new secret' },
        })
        .hit(2 * AFTER),
    ],
    [
      'webhooks at least once',
      'it never arrived',
      given()
        .submission(AT, { isSilent: true })
        .told(AT + 2 * SECOND_MS),
    ],
    [
      'webhooks at least once',
      'it never arrived',
      refused(
        given()
          .submission(AT, { isSilent: true })
          .told(AT + 2 * SECOND_MS),
        3,
      ),
    ],
    [
      'nothing after the end of a webhook',
      'called after it answered 410',
      given()
        .submission(AT)
        .hit(AFTER, { answered: 410 })
        .hit(2 * AFTER),
    ],
    [
      'nothing after the end of a webhook',
      'called after it was turned off',
      given()
        .submission(AT)
        .call(AFTER, 'DELETE', '/v1/webhooks/wh_1')
        .hit(2 * AFTER),
    ],
    ['mails at most once', 'it came twice', given().submission(AT).told(AFTER)],
    ['mails at most once', 'it came twice', given().submission(AT).told(AFTER, { messageId: 'dlv_2@x' })],
    [
      'mails at least once',
      'it never came',
      given()
        .submission(AT, { isSilent: true })
        .hit(AT + SECOND_MS),
    ],
    [
      'mails at least once',
      'given up though only the sender was refused',
      given()
        .submission(AT, { isSilent: true })
        .hit(AT + SECOND_MS)
        .mail(AT + SECOND_MS, { step: 'from', answered: 550 }),
    ],
    ['owners are asked to confirm', 'it never came', unasked()],
    [
      'no mail after a stop link',
      'it came',
      stopped(given().submission(AT), AFTER).told(2 * AFTER, { messageId: 'dlv_2@x', id: OTHER }),
    ],
    [
      'no mail after a hand-over',
      'answers that came before',
      handedOver(
        given()
          .submission(AT, { isSilent: true })
          .hit(AT + SECOND_MS),
        AFTER,
      ).told(2 * AFTER),
    ],
    [
      'no mail after a hand-over',
      'answers that came later',
      handedOver(given(), AFTER).submission(2 * AFTER),
    ],
    [
      'nothing of what was removed',
      'a row in deliveries',
      withRow(given().submission(AT).call(AFTER, 'DELETE', `/v1/submissions/${SUB}`).gone()),
    ],
    [
      'nothing of what was removed',
      'a webhook came later',
      given()
        .submission(AT)
        .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
        .gone()
        .hit(2 * AFTER),
    ],
    [
      'nothing of what was removed',
      'a mail came later',
      given()
        .submission(AT, { isSilent: true })
        .hit(AT + SECOND_MS)
        .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
        .gone()
        .told(2 * AFTER),
    ],
    [
      'erases a value everywhere',
      'left as number',
      erased(given().submission(AT, { answers: { n: 4711 } }), '4711'),
    ],
    [
      'erases a value everywhere',
      'left as untrimmed text',
      erased(given().submission(AT, { answers: { n: ' ada@x.example ' } }), 'ada@x.example'),
    ],
    ['erases a value everywhere', 'left as source', erased(given().submission(AT, { source: 'ada' }), 'ada')],
    [
      'erases a value everywhere',
      'left as idempotency key',
      erased(given().submission(AT, { key: 'ada' }), 'ada'),
    ],
    [
      'what has ended opens nothing',
      'a key that was revoked',
      revoked(given()).call(AFTER, 'GET', '/v1/forms', { key: 'made' }),
    ],
    [
      'what has ended opens nothing',
      'a key whose maker was revoked',
      revoked(given()).call(AFTER, 'GET', '/v1/forms', { key: 'child' }),
    ],
    [
      'what has ended opens nothing',
      'a link that was used',
      given().call(AFTER, 'POST', linkOf('confirm-owner', OWNER), { key: null }),
    ],
    ['what has ended opens nothing', 'a session after twelve hours', used(signedIn(given()), 13 * HOUR_MS)],
    [
      'what has ended opens nothing',
      'a session of a former owner',
      used(handedOver(signedIn(given()), AFTER), 2 * AFTER),
    ],
    [
      'what has ended opens nothing',
      'a session from before another secret key',
      used(rotated(signedIn(given()), AFTER), 2 * AFTER),
    ],
    [
      'what has ended opens nothing',
      'a link from before another secret key',
      rotated(given().mail(AT, { raw: linkOf('change-owner', HEIR) }), AFTER).call(
        2 * AFTER,
        'POST',
        linkOf('change-owner', HEIR),
        { key: null },
      ),
    ],
    ['what is dead is vacuumed', 'not sessions', dead(given())],
    [
      'what is dead is vacuumed',
      'nothing was written anew',
      neverRewritten(given().submission(AT).call(AFTER, 'DELETE', `/v1/submissions/${SUB}`).gone()),
    ],
    ['reminded until the end', 'after the end', asked().mail(HOUR_MS, { to: [ASKED], raw: 'A reminder' })],
    ['reminded until the end', 'it never came', asked()],
    ['one callback for each ask', 'another outcome', calledBack('declined')],
    ['one callback for each ask', 'two outcomes', calledBack('cancelled', 'expired')],
    ['one callback for each ask', 'it never came', asked()],
    ['no file is orphaned', 'without a row', withFile(given(), { row: false })],
    ['no file is orphaned', 'without a submission', withFile(given(), { row: true })],
    [
      'no file is orphaned',
      'of a submission that was deleted',
      withFile(
        given()
          .submission(AT, { answers: { cv: { upload_id: 'upl_1' } } })
          .call(AFTER, 'DELETE', `/v1/submissions/${SUB}`)
          .gone(),
        { row: false },
      ),
    ],
    ['files are kept', 'it is gone', lostFile()],
    ['counters equal rows', 'they differ', counted()],
    ['queues are empty when quiet', 'a mail waits', waiting()],
  ];

  it.each(cases)('%s: %s', (rule, reason, days) => {
    expect(days.findings()).toContain(`${rule}: ${reason}`);
  });

  it('something by each rule', () => {
    const named = new Set(cases.map(([rule]) => rule));
    expect(rules.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([]);
  });
});

/** Somebody who is asked for eight hours, and the asker who ends that after half an hour. */
function asked(): Days {
  const body = {
    notify: { email: ASKED, remind_after: [7200] },
    callback: { url: CALLBACK, secret: 'a secret of the asker' },
    expires_in: 28_800,
  };
  const session = { id: 'sess_1', created_at: new Date(AT).toISOString() };
  return given()
    .call(AT, 'POST', '/v1/sessions', { status: 201, body, json: { session } })
    .call(AT + 30 * MINUTE_MS, 'POST', '/v1/sessions/sess_1/cancel');
}

function calledBack(...outcomes: string[]): Days {
  return outcomes.reduce(
    (days, outcome) =>
      days.ended(AT + 31 * MINUTE_MS, { url: CALLBACK, outcome, secret: 'a secret of the asker' }),
    asked(),
  );
}

const ASKED = 'asked@people.example';
const CALLBACK = 'https://ask.example/hook';

function lostMail(): Days {
  const days = given()
    .submission(AT, { isSilent: true })
    .hit(AT + SECOND_MS);
  const raw = `Message-ID: <dlv_${SUB}@x>\n\n${MARK} ${SUB}`;
  return days.mail(AT + SECOND_MS, { raw, answered: 'lost' }).mail(AFTER, { raw });
}

function refused(days: Days, times: number): Days {
  for (let nth = 1; nth <= times; nth++) days.hit(AT + nth * HOUR_MS, { answered: 503 });
  return days;
}

function stopped(days: Days, at: number): Days {
  return days.call(at, 'POST', linkOf('stop', OWNER), { key: null, body: 'stop=form' });
}

function handedOver(days: Days, at: number): Days {
  return days
    .call(at, 'POST', `/v1/forms/${FORM}/owner`, { status: 202, body: { email: HEIR } })
    .call(at + MINUTE_MS, 'POST', linkOf('change-owner', HEIR), { key: null });
}

function withRow(days: Days): Days {
  days.end.texts.push({ table: 'deliveries', text: MARK });
  return days;
}

function withFile(days: Days, { row }: { row: boolean }): Days {
  days.call(AT - SECOND_MS, 'POST', `/api/forms/${FORM}/uploads?field=cv&filename=a.txt`, {
    status: 201,
    json: { upload: { upload_id: 'upl_1' } },
  });
  days.end.files = new Map([['upl_1', new Uint8Array()]]);
  if (row) days.end.uploadRows.set('upl_1', undefined);
  return days;
}

function lostFile(): Days {
  const days = withFile(given().submission(AT, { answers: { cv: { upload_id: 'upl_1' } } }), { row: true });
  days.end.files = new Map();
  return days;
}

function counted(): Days {
  const days = given().submission(AT);
  days.end.counts.push({ formId: FORM, counted: 2, stored: 1 });
  return days;
}

function waiting(): Days {
  const days = given().submission(AT);
  days.end.queue.push({ id: 'dlv_1', channel: 'mail', kind: 'owner', formId: FORM, error: '' });
  return days;
}

function deletedWithSession(): Days {
  return given()
    .call(AT, 'POST', `/v1/forms/${FORM}/sessions`, { status: 201, json: { session: { id: 'sess_1' } } })
    .call(AT + SECOND_MS, 'POST', '/v1/sessions/sess_1/submit', {
      status: 201,
      body: { answers: { note: MARK } },
      json: { submission_id: SUB, session: { id: 'sess_1' } },
    })
    .call(AFTER, 'POST', `/v1/forms/${FORM}/archive`)
    .call(2 * AFTER, 'DELETE', `/v1/forms/${FORM}`)
    .gone();
}

function unasked(): Days {
  const body = { name: 'Form', fields: [], delivery: { type: 'email' } };
  return new Days()
    .call(0, 'POST', '/api/forms/create', { status: 201, body, json: { form: { id: FORM, name: 'Form' } } })
    .call(SECOND_MS, 'POST', `/api/forms/${FORM}/activate?token=t`, { key: null, body: { email: OWNER } });
}

/** A key that has made another, and was revoked with it. */
function revoked(days: Days): Days {
  return days
    .call(AT, 'POST', '/v1/keys', { status: 201, json: { key: { id: 'key_1' }, secret: 'made' } })
    .call(AT + SECOND_MS, 'POST', '/v1/keys', {
      key: 'made',
      status: 201,
      json: { key: { id: 'key_2' }, secret: 'child' },
    })
    .call(AT + 5 * SECOND_MS, 'DELETE', '/v1/keys/key_1?children=revoke');
}

function signedIn(days: Days): Days {
  const body = { token: 'a.b.c' };
  const json = { sessionToken: 'own_1' };
  return days.call(AT, 'POST', '/headlessforms.v1.OwnersService/SignIn', {
    key: null,
    body,
    json,
    actor: `owner ${OWNER}`,
  });
}

function used(days: Days, at: number): Days {
  return days.call(at, 'POST', '/headlessforms.v1.OwnersService/GetOwner', { key: 'own_1' });
}

function rotated(days: Days, at: number): Days {
  days.observed.push({ kind: 'rotated', at, process: 1 });
  return days;
}

function dead(days: Days): Days {
  days.end.dead.push(
    { table: 'sessions', dead: 400, live: 100 },
    { table: 'events', dead: 400, live: 9_000 },
  );
  return days;
}

function neverRewritten(days: Days): Days {
  days.end.texts = days.end.texts.filter(({ table }) => table !== 'installation');
  return days;
}
