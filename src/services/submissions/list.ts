import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { ListSubmissionsRequest } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { type AnswerFilter, readFilters } from '../../domain/answers/answer-filters.ts';
import { failed } from '../../domain/errors/failure.ts';
import { summarize } from '../../domain/errors/violations.ts';
import { instantOfId, isId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import type { PageRequest } from '../../store/database/queries.ts';
import { findFormState } from '../../store/forms/forms.ts';
import { listSubmissions, type SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import {
  countFound,
  countSubmissions,
  type FoundSubmissions,
  findAtOffset,
  searchSubmissions,
} from '../../store/submissions/submission-search.ts';
import type { ServiceContext } from '../context.ts';
import { requireProjectForm } from '../forms/form-access.ts';
import { limitCallersAtOnce } from '../limits/calls-at-once.ts';
import { badParameter, pageRequestOf, refuseUnfitFilter } from '../request-values.ts';
import { submissionRangeOf, submissionToMessage } from './submission-proto.ts';

/**
 * Lists a form's submissions, newest first. A form of another project is not there. What goes through many rows goes on
 * for few calls at once, so that it harms no others.
 */
export function createSubmissionList(context: ServiceContext) {
  const { database, forms, audit } = context;
  const walks = limitCallersAtOnce('deep offsets', WALKS_AT_ONCE, { retryAfter: 1 });
  const searches = limitCallersAtOnce('searches', SEARCHES_AT_ONCE, { retryAfter: 1 });

  return async (request: ListSubmissionsRequest, call: HandlerContext) => {
    const caller = callerOf(call);
    const { formId, skip, includeTotal } = request;
    const form = await requireProjectForm(forms, caller, formId);
    const { filters, violations } = readFilters(form.version?.definition ?? { fields: [] }, request.filters);
    if (violations.length > 0) throw failed(Reason.BAD_REQUEST, summarize(violations), { violations });
    if (skip < 0) throw badParameter('skip', 'custom', 'Expected a whole number from 0');
    if (skip > 0 && filters.length > 0)
      throw badParameter('skip', 'custom', 'A list with a filter goes on with the cursor');
    const range = pageRequestOf(request, 'sub');
    const filter = filterOf(request);
    if (request.sessionId !== '' && !isId('sess', request.sessionId)) return { submissions: [] };

    using _ = filters.length > 0 ? searches.enter(caller) : undefined;
    using __ = skip > FEW ? walks.enter(caller) : undefined;
    const found =
      filters.length > 0
        ? await searchSubmissions(database, formId, { ...filter, filters }, range)
        : await listed(formId, filter, { ...range, skip });
    const total = includeTotal ? await totalOf(formId, { ...filter, filters }) : undefined;
    audit.note(call, { formId });
    return {
      submissions: found.items.map(submissionToMessage),
      nextPageToken: found.nextCursor ?? '',
      ...(found.searchedTo != null && { searchedUntil: timestampFromMs(instantOfId(found.searchedTo)) }),
      ...(total !== undefined && { totalSize: BigInt(total) }),
    };
  };

  async function listed(
    formId: string,
    filter: SubmissionFilter,
    { skip, limit, cursor }: PageRequest & { skip: number },
  ): Promise<FoundSubmissions> {
    if (skip === 0) return listSubmissions(database, formId, filter, { limit, cursor });
    if (skip >= ((await countStored(formId, filter)) ?? skip + 1)) return NONE;
    const from = await findAtOffset(database, formId, filter, { cursor, offset: skip });
    return from === null ? NONE : listSubmissions(database, formId, filter, { limit, cursor: from });
  }

  async function totalOf(
    formId: string,
    { filters, ...filter }: SubmissionFilter & { filters: AnswerFilter[] },
  ): Promise<number | undefined> {
    if (filters.length > 0) return countFound(database, formId, { ...filter, filters });
    const { status: _, ...further } = filter;
    return Object.keys(further).length === 0
      ? countStored(formId, filter)
      : countSubmissions(database, formId, filter);
  }

  /** By the form's counters, if it has one for them, whatever else the filter says. */
  async function countStored(formId: string, { status }: SubmissionFilter): Promise<number | undefined> {
    if (status === 'replaced') return countSubmissions(database, formId, { status });
    const { accepted = 0, spam = 0 } = (await findFormState(database, formId)) ?? {};
    return status === 'spam' ? spam : accepted;
  }
}

function filterOf(request: ListSubmissionsRequest): SubmissionFilter {
  const { sessionId, source } = request;
  refuseUnfitFilter(source, 'source');
  return {
    ...submissionRangeOf(request),
    ...(sessionId !== '' && { sessionId }),
    ...(source !== '' && { source }),
  };
}

/** What is skipped by one statement. */
const FEW = 10_000;

const WALKS_AT_ONCE = { perKey: 1, perProject: 1, total: 4 };

/** Each takes about a second at most. */
const SEARCHES_AT_ONCE = { perKey: 4, perProject: 4, total: 16 };

const NONE = { items: [], nextCursor: null };
