import type { MessageInitShape } from '@bufbuild/protobuf';
import { ConnectError, type HandlerContext } from '@connectrpc/connect';
import {
  HostedState,
  type PreviewFormRequest,
  type PreviewFormResponseSchema,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { checkOrigin } from '../../domain/addresses/origins.ts';
import {
  checkDefinition,
  type DefinitionResult,
  type FormDefinition,
} from '../../domain/definition/definition.ts';
import { failureOf } from '../../domain/errors/failure.ts';
import { KEYLESS_CREATOR } from '../../domain/ids.ts';
import { isObject } from '../../domain/json/json.ts';
import { brokenLine, linesIn, NotJson, parseJson } from '../../domain/json/json-text.ts';
import { messageLimits } from '../../domain/limits/limits.ts';
import type { ServiceContext } from '../context.ts';
import { makerOf } from '../forms/form-access.ts';
import { visitToMessage } from './hosted-proto.ts';

/** Checks the text of a form, and makes what its page would show to its first visitor. */
export async function previewForm(
  context: ServiceContext,
  { text }: PreviewFormRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof PreviewFormResponseSchema>> {
  const { settings } = context;
  checkOrigin(call.requestHeader, [new URL(settings.baseUrl).origin], settings);
  const keyless = makerOf(settings, call) === undefined;
  const allowPrivateUrls = settings.allowPrivateWebhooks;
  const read = readText(text, (value) => checkDefinition(value, { keyless, allowPrivateUrls }));
  if ('problems' in read) return { problems: read.problems.toSorted((one, other) => one.line - other.line) };

  const { definition } = read;
  const version = { formId: PREVIEW, definition };
  const visit = {
    form: { id: PREVIEW, version, createdBy: keyless ? KEYLESS_CREATOR : PREVIEW },
    version,
    stored: undefined,
    session: { prefill: {}, partialAnswers: null },
    state: HostedState.OPEN,
    permanent: true,
    standing: { isSent: false },
  };
  return { session: await visitToMessage(context, visit, { posted: false }, call) };
}

/** Reads JSON and checks it. All problems have their lines; an unreadable text has one. */
function readText(text: string, check: (value: unknown) => DefinitionResult): TextRead {
  try {
    const { value } = parseJson(Buffer.from(text), 'form', messageLimits.definition.maxNodes);
    const { $schema: _, ...definition } = isObject(value) ? value : {};
    const checked = check(isObject(value) ? definition : value);
    return checked.ok ? checked : { problems: withLines(text, checked.violations) };
  } catch (error) {
    const failure = failureOf(error);
    if (!(error instanceof ConnectError) || failure === undefined) throw error;
    if (failure.violations.length > 0) return { problems: withLines(text, failure.violations) };
    const { line, kind = 'end' } = error.cause instanceof NotJson ? error.cause : {};
    const message = kind === 'end' ? error.rawMessage : NOT_JSON;
    return { problems: [{ line: line ?? brokenLine(text.trimEnd()), path: '', message }] };
  }
}

/** The line of what is missing is that of what lacks it. */
function withLines(
  text: string,
  violations: readonly Pick<TextProblem, 'path' | 'message'>[],
): TextProblem[] {
  const lines = linesIn(text);
  return violations.map(({ path, message }) => {
    let place = path;
    while (!lines.has(place)) place = place.slice(0, Math.max(0, place.lastIndexOf('.')));
    return { line: lines.get(place) ?? 1, path, message };
  });
}

const NOT_JSON = 'The form is not JSON from here on. Check the commas, quotes and brackets';

/** Stands for the form that is not made. */
const PREVIEW = 'preview';

type TextProblem = { line: number; path: string; message: string };

type TextRead = { definition: FormDefinition } | { problems: TextProblem[] };
