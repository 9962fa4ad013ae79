/** Who relies on a definition: who sends answers, receivers of events, readers of exports, who prefills, open sessions. */
export const consumers = ['clients', 'webhooks', 'csv', 'prefill', 'sessions'] as const;

export type Consumer = (typeof consumers)[number];

/** What was valid stays valid, and answers read as before. */
const harmless = { breaks: [], backward: true, forward: true } as const;
/** What was valid can be refused. */
const refusesFormerAnswers = { breaks: ['clients', 'prefill'], backward: false, forward: true } as const;
/** What each kind of change breaks. The reason for each is in docs/contracts.md. */
export const changeKinds = {
  field_added: harmless,
  required_field_added: refusesFormerAnswers,
  field_removed: { breaks: consumers, backward: false, forward: true },
  required_field_removed: { breaks: consumers, backward: false, forward: false },
  field_retyped: { breaks: consumers, backward: false, forward: false },
  made_required: refusesFormerAnswers,
  made_optional: { breaks: ['webhooks'], backward: true, forward: false },
  limits_narrowed: refusesFormerAnswers,
  limits_widened: harmless,
  option_added: harmless,
  option_removed: refusesFormerAnswers,
  option_unlisted: harmless,
  answerer_narrowed: refusesFormerAnswers,
  answerer_widened: harmless,
  condition_changed: { breaks: ['webhooks'], backward: true, forward: true },
  visibility_changed: harmless,
  default_changed: harmless,
  page_moved: harmless,
  text_changed: harmless,
  setting_changed: harmless,
  access_narrowed: { breaks: ['clients', 'sessions'], backward: true, forward: true },
  delivery_changed: { breaks: ['webhooks'], backward: true, forward: true },
} as const satisfies Record<string, Verdict>;

export type ChangeKind = keyof typeof changeKinds;

export type Verdict = {
  breaks: readonly Consumer[];
  /** Whether every answer that was valid stays valid. */
  backward: boolean;
  /** Whether readers of the former version can read the new answers. */
  forward: boolean;
};

/** A place of a definition and what became of it. */
export type Found = { path: string; kind: ChangeKind };
