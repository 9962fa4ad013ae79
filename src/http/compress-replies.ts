import { constants } from 'node:zlib';
import compression from 'compression';
import type { RequestHandler } from 'express';
import { isFormPost } from './multipart.ts';

/**
 * Compresses replies of REST and pages, by brotli or gzip, where their length can tell nobody anything.
 *
 * Who sees the length of a compressed reply, and can have a victim's browser ask for it with a text of their choice,
 * guesses a secret beside that text character by character (BREACH). A browser adds cookies by itself, and nothing else
 * that opens a secret. So a reply to a request with cookies stays as it is: owners' pages, which show answers beside
 * what is searched for, and pages that show what a visitor has kept. So does a reply to any post but that of an HTML
 * form: those that show a key or a signing secret once, beside the name or URL that was sent.
 *
 * Streams of events are sent line by line, so they are never compressed.
 */
export const compressReplies: RequestHandler = (request, response, next) => {
  const { method, headers } = request;
  const isRead = method === 'GET' || method === 'HEAD' || isFormPost(request);
  if (headers['accept-encoding'] === undefined || headers.cookie !== undefined || !isRead) next();
  else compress(request, response, next);
};

/** Replies are made for one request each: higher levels take more time than they save. */
const compress = compression({
  level: 4,
  brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } },
  filter(request, response) {
    const type = String(response.getHeader('content-type'));
    if (type.startsWith('text/event-stream')) return false;
    // Files come with their size, by which clients show how far a download is and see that it is whole.
    if (response.hasHeader('content-disposition') && response.hasHeader('content-length')) return false;
    return type.startsWith('application/x-ndjson') || compression.filter(request, response);
  },
});
