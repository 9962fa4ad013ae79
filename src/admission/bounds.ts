const MIB = 1024 * 1024;

/**
 * What this process takes at once. The table of all bounds of connections, requests and bodies, beside the settings
 * MAX_CONNECTIONS and MAX_CONNECTIONS_PER_CLIENT.
 */
export const standardBounds: Bounds = {
  client: {
    // The largest definition takes 2.3 ms to read and to write, so six take some 15 ms.
    begunInSlice: 6,
    // More than the monitors of health that share an address. The largest form made without a key is an answer of some
    // 160 KB, so all together are some 32 MB.
    underWay: 200,
    waiting: { requests: 200, headerBytes: MIB },
    // The largest body, an upload by RPC, has 11.
    bodyBytes: 12 * MIB,
  },
  strangers: { waiting: { requests: 4_000, headerBytes: 32 * MIB }, bodyBytes: 64 * MIB },
  known: { bodyBytes: 128 * MIB },
  // Twenty seconds of grace as in Apache's mod_reqtimeout. Its 500 bytes a second would let 256 KiB be held for nine
  // minutes; this is a third of what EDGE, the slowest mobile network in use, sends.
  arrival: { graceMs: 20_000, bytesPerSecond: 4 * 1024 },
};

/** Of one connection over HTTP/2. */
export const http2Bounds = {
  /** Calls at once: what clients such as browsers and those of gRPC take for granted. */
  streams: 100,
  /** Calls that are cancelled at once: twice as many as there are streams, then as many a second as by default. */
  resets: 200,
  resetsPerSecond: 33,
  /**
   * Pings and settings in ten seconds. Clients of gRPC measure the line with a ping for each round trip at the
   * beginning of a long answer, and send one in seconds afterwards.
   */
  controlFrames: 10_000,
  controlFramesMs: 10_000,
};

/** Of one connection over HTTP/1.1: as many requests wait as there are calls on a connection over HTTP/2. */
export const MAX_PIPELINED = http2Bounds.streams;

/**
 * Connections that wait to be taken: with Node's 511, those of others wait for seconds beside a flood. Linux allows
 * as many by default.
 */
export const MAX_BACKLOG = 4_096;

/** Of the port of the metrics, which one or two programs read. */
export const MAX_METRICS_CONNECTIONS = 20;

/** Of the body of one request. */
export const bodyBounds = {
  /** What one costs that has hardly begun to arrive: stream, request, response and call. */
  overheadBytes: 4 * 1024,
  /** What is read of it before others go on. */
  sliceBytes: 64 * 1024,
  /** What a request of HTTP/2 keeps before it is read; its stream keeps another 64 KiB. */
  unreadBytes: 16 * 1024,
  /** How much is dropped of the rest of one that is answered before its end, and for how long. */
  discarded: {
    ms: 30_000,
    /** Enough for a file that is somewhat too large: most clients read an answer after they have sent everything. */
    http1Bytes: 16 * MIB,
    /** Clients of HTTP/2 read while they send. */
    http2Bytes: MIB,
    /** Enough for answers to a form: dropping costs memory, too, until it is collected. */
    overBudgetBytes: 64 * 1024,
  },
};

/** How much of a connection's small chunks is taken. */
export const chunkBounds = {
  /** Of each request, since a proxy sends the small bodies of many clients on one connection. */
  free: 32,
  /** Some milliseconds of work; enough for answers that a program writes word by word. */
  most: 1_024,
  /** More than people type, or programs flush, on a connection. */
  perMs: 1,
  /** Less than a line of text or a small message, which cost no more than a packet of their own would. */
  bytes: 64,
  /** A fourth of what a connection may have in 64 KiB, which is what Node reads before it looks whether to go on. */
  inSlice: 256,
};

/** How long connections may take or wait, in milliseconds, so that slow and silent ones do not add up. */
export const standardTimeOuts = {
  /** For the headers of a request over HTTP/1.1; for the settings of both sides over HTTP/2. */
  headersMs: 10_000,
  /** Without a call. Connections over HTTP/2 are made for many calls, and their clients hear of the end in time. */
  http1IdleMs: 5_000,
  http2IdleMs: 120_000,
  /** For an answer that is not sent because nobody reads it. */
  stalledMs: 120_000,
  /** Silence of a client with calls under way before it is asked whether it is there, over HTTP/2. */
  pingAfterMs: 30_000,
  pongMs: 20_000,
  /** For a client to close its side of a connection that is closed on this one. */
  lingerMs: 1_000,
  /**
   * How often those over HTTP/1.1 are checked: a time-out may come so much later. Often, so that few are ended at
   * once.
   */
  checkEveryMs: 250,
  /** How often each over HTTP/2 is, at times of its own. Seldom, since thousands may wait for hours. */
  http2CheckMs: 10_000,
};

/** Of the URL and all headers of one request. */
export const MAX_HEADER_BYTES = 16 * 1024;

export type Bounds = {
  /** Of one client that has shown no key, over all its connections. */
  client: {
    /** Requests that begin in one time slice, a turn of the event loop. */
    begunInSlice: number;
    underWay: number;
    waiting: WaitingBounds;
    bodyBytes: number;
  };
  /** Of all clients without a key. */
  strangers: { waiting: WaitingBounds; bodyBytes: number };
  /** Of all callers with one, whom strangers must not crowd out. */
  known: { bodyBytes: number };
  /** Of one body. */
  arrival: ArrivalRate;
};

/** A body may stop for `graceMs`, but not be slower than `bytesPerSecond` for longer. */
export type ArrivalRate = { graceMs: number; bytesPerSecond: number };

/** Of requests that have not begun, and of their headers. */
export type WaitingBounds = { requests: number; headerBytes: number };

export type TimeOuts = typeof standardTimeOuts;
