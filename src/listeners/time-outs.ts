/** How long connections may take or wait, in milliseconds, so that slow and silent ones do not add up. */
export const standardTimeOuts = {
  /** For the headers of a request over HTTP/1.1; for the settings of both sides over HTTP/2. */
  headersMs: 10_000,
  /** Without a call, over HTTP/1.1. */
  http1IdleMs: 5_000,
  /** For a call under way whose connection sends and takes nothing. Streams that wait send something sooner. */
  stalledMs: 120_000,
  /** For the sender to read a refusal, after which its connection is destroyed. */
  lingerMs: 1_000,
  /** How often connections are checked: a time-out may come so much later. Often, so that few are ended at once. */
  checkEveryMs: 250,
};

export type TimeOuts = typeof standardTimeOuts;
