/** What the thread of the embedded database begins with. It posts a message to its parent once the database is open. */
export type ThreadInput = {
  /** Holds the database; undefined: in memory. */
  place: string | undefined;
  /** The dump of another to begin with. */
  dump: ArrayBuffer | undefined;
};

/** What a session asks of the thread. */
export type DatabaseRequest = DatabaseCall & { id: number };

export type DatabaseCall =
  | {
      what: 'statement';
      sql: string;
      params?: unknown[] | undefined;
      /** Whether its plan is kept. */
      prepared?: boolean;
      /** Whether others may go first. */
      isLate?: boolean;
      /** Any number, the same for all statements of a transaction. */
      transaction?: number;
      step?: 'begin' | 'end';
    }
  | { what: 'listen'; channel: string }
  /** `listener` is the id of the request to listen. */
  | { what: 'unlisten'; listener: number }
  | { what: 'dump' }
  /** Comes after all else. */
  | { what: 'close' };

/** The answer to the request of that id; and, if that was one to listen, each notification after it. */
export type DatabaseAnswer = { id: number; result?: unknown; error?: { message: string } };
