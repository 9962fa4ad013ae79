/** How long connections may take or wait, in milliseconds, so that slow and silent ones do not add up. */
export const standardTimeOuts = {
  /** For the headers of a request over HTTP/1.1; for the settings of both sides over HTTP/2. */
  headersMs: 10_000,
  /** Without a call. Connections over HTTP/2 are made for many calls, and their clients hear of the end in time. */
  http1IdleMs: 5_000,
  http2IdleMs: 120_000,
  /** For an answer of which nothing is sent because nobody takes it. */
  stalledMs: 120_000,
  /** Silence of a client with calls under way before it is asked whether it is there, over HTTP/2. */
  pingAfterMs: 30_000,
  pongMs: 20_000,
  /** For a client to close its side of a connection that is closed on this one. */
  lingerMs: 1_000,
  /** How often connections are checked: a time-out may come so much later. Often, so that few are ended at once. */
  checkEveryMs: 250,
};

export type TimeOuts = typeof standardTimeOuts;

/** Of the URL and all headers of one request. */
export const MAX_HEADER_BYTES = 16 * 1024;
