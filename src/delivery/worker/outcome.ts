/** What came of trying a delivery. */
export type Outcome =
  | ({ outcome: 'delivered' } & Answer)
  | ({
      outcome: 'failed';
      /** Why, in words for the owner of the webhook. Never tells a private address. */
      error: string;
      /** True: trying again can't help. */
      final?: boolean;
      /** The receiver wants no more. */
      gone?: boolean;
      /** The `Retry-After` header of the answer. */
      retryAfter?: string | undefined;
    } & Answer)
  /** Nothing was tried: a limit is reached. */
  | { outcome: 'waits'; error: string; waitMs: number }
  /** Nothing was tried and nothing will be. */
  | { outcome: 'dropped'; error: string };

/** What the receiver said: an HTTP or SMTP status, and the beginning of its words. */
type Answer = { responseStatus?: number | undefined; responseBody?: string | undefined };
