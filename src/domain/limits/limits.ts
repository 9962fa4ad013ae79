/** Items of a page, in every list. */
export const pageSizes = { default: 20, max: 100 } as const;

/** How long a session may live, in seconds: an hour unless its maker says otherwise, at most 30 days. */
export const sessionSeconds = { default: 3600, min: 1, max: 2_592_000 } as const;

/** How long one call waits for a session, in seconds. */
export const waitSeconds = { default: 30, min: 1, max: 60 } as const;

/** How long a new webhook secret may wait to take effect, in seconds: at most seven days. */
export const secretDelaySeconds = { default: 0, min: 0, max: 604_800 } as const;

/** Characters of a webhook's signing secret. */
export const secretLength = { min: 8, max: 256 } as const;

/** Characters of an idempotency key. */
export const idempotencyKeyLength = { min: 1, max: 255 } as const;
