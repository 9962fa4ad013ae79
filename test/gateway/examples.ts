import { requestExamples } from '../../src/gateway/openapi/examples.ts';

/** A body that fits, for each operation that reads one, and the query of those that need one. */
export const examples: Record<string, Example> = {
  ...Object.fromEntries(Object.entries(requestExamples).map(([name, json]) => [name, { json }])),
  activateForm: { json: requestExamples.activateForm, query: '?token=t' },
  createUpload: { body: 'content', type: 'application/octet-stream', query: '?field=cv&filename=cv.txt' },
};

export type Example = { json?: object | undefined; body?: string; type?: string; query?: string };
