/** A body that each operation takes, by the operation's name. */
export const requestExamples: Readonly<Record<string, object>> = {
  createForm: {
    name: 'Contact',
    slug: 'contact',
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'message', type: 'textarea', maxLength: 2000 },
    ],
    delivery: { type: 'email' },
  },
  validateForm: {
    name: 'Order',
    slug: 'order',
    fields: [
      {
        id: 'size',
        type: 'select',
        options: [
          { label: 'Small', value: 's' },
          { label: 'Large', value: 'l' },
        ],
      },
      {
        id: 'code',
        type: 'text',
        pattern: '[A-Z]{2}[0-9]{4}',
        patternMessage: 'Two letters and four digits',
      },
    ],
    delivery: { type: 'webhook', url: 'https://example.com/orders' },
  },
  publishFormVersion: {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email', required: true, label: 'Your address' }],
    delivery: { type: 'email', replyTo: 'email' },
    settings: { allowPartial: true, successMessage: 'Thank you' },
  },
  applyForm: {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email', required: true }],
    delivery: { type: 'email' },
    owner: 'owner@example.com',
    managed_by: 'forms/',
  },
  updateForm: { key: 'contact', managed_by: 'forms/' },
  activateForm: { email: 'owner@example.com' },
  changeFormOwner: { email: 'next@example.com' },
  submit: { source: 'website', answers: { email: 'ada@example.com', message: 'Hello' } },
  createSubmission: { source: 'crm', answers: { email: 'ada@example.com' } },
  createStreamToken: { form_id: 'form_0000000000000000000000' },
  submitDemo: { name: 'Ada', email: 'ada@example.com', message: 'Hello' },
  declineSession: { reason: 'It is not mine to decide.' },
  ask: {
    definition: { fields: [{ label: 'Which date suits?', type: 'date', required: true }] },
    context: {
      title: 'Release 4.2',
      items: [{ label: 'Changes', value: 'https://example.com/4.2', kind: 'link' }],
    },
    allow_decline: true,
  },
  createSession: {
    expires_in: 86_400,
    prefill: { email: 'ada@example.com' },
    metadata: { customer: 'c_17' },
    return_url: 'https://example.com/thanks',
  },
  updateSession: { extend_by: 3600, prefill: { email: 'grace@example.com' } },
  submitSession: { answers: { message: 'Hello' } },
  createWebhook: { url: 'https://example.com/hook', events: ['submission.created', 'session.expired'] },
  updateWebhook: { active: false },
  rotateWebhookSecret: { effective_in: 3600 },
  replayDeliveries: { status: 'failed' },
  replayFormDeliveries: { status: 'failed' },
  testWebhook: {},
  eraseSubmissions: { value: 'ada@example.com' },
  createKey: { name: 'ci', scopes: ['forms:write', 'submissions:read'], expires_in: 31_536_000 },
};

/** The same for bodies that are an HTML form's. */
export const formExamples: Readonly<Record<string, object>> = {
  activateForm: { email: 'owner@example.com' },
  submit: {
    email: 'ada@example.com',
    message: 'Hello',
    _source: 'website',
    _next: 'https://example.com/thanks',
  },
  createUpload: { field: 'cv', file: 'the bytes of the file' },
};
