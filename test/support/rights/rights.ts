import type { Right } from '../../../src/domain/scopes.ts';

/**
 * The right over answers that each RPC uses, by service. `none`: its reply has nothing of what people answered, and it
 * deletes nothing of it. A test calls each with every kind of caller to compare.
 */
export const rightsUsed: Record<string, Table<UsedRight>> = {
  FormsService: {
    none: `validateForm createForm getActivation activateForm getForm listForms publishFormVersion listFormVersions
      getFormVersion applyForm updateForm archiveForm changeFormOwner getAgentSchema getAnswersSchema
      getPublicForm`,
    deletion: 'deleteForm',
  },
  SubmissionsService: {
    none: 'createSubmission createManagedSubmission checkAnswers checkManagedAnswers createDemoSubmission createStreamToken',
    reading: 'getSubmission listSubmissions exportSubmissions watchSubmissions',
    deletion: 'deleteSubmission eraseSubmissions',
  },
  SessionsService: {
    none: 'createSession getSessionAgentSchema',
    // A session that was submitted holds its submission, for keys that read answers.
    reading: 'getSession awaitSession',
    session: 'getSession awaitSession listSessions updateSession cancelSession declineSession submitSession',
  },
  WebhooksService: {
    none: `createWebhook listWebhooks getWebhook updateWebhook deleteWebhook rotateWebhookSecret testWebhook
      listDeliveries listFormDeliveries replayDelivery replayDeliveries getWebhookPublicKey`,
    reading: 'listen',
  },
  KeysService: { none: 'createKey listKeys deleteKey' },
  AuditService: { none: 'listAuditEntries' },
  HostedService: {
    none: 'openHostedSession submitPostedForm sendRespondentCode giveRespondentCode previewForm',
    session: 'getHosted postHosted',
  },
  UploadsService: { none: 'createUpload uploadFile', reading: 'getUpload getLinkedUpload' },
  MailService: { none: 'getMailLink followMailLink startMail' },
  OwnersService: {
    none: `requestSignIn getSignInLink signIn signOut listOwnerSessions endOwnerSession getOwner listOwnedForms
      getOwnedForm confirmOwnedForm closeOwnedForm reopenOwnedForm setOwnedFormMails addFormRecipient
      removeFormRecipient offerOwnedForm replayOwnedDelivery markOwnedSubmissionsRead publishOwnedFormTexts
      withdrawOwnedFormOffer`,
    reading: `listOwnedSubmissions searchOwnedSubmissions getOwnedSubmission exportOwnedSubmissions getOwnedUpload
      getOwnedFormStatistics`,
    deletion: 'deleteOwnedSubmission deleteOwnedForm',
  },
  Health: { none: 'check watch' },
  ServerReflection: { none: 'serverReflectionInfo' },
};

/**
 * The right that each field gives, by message, of all requests that are no reads and of what they hold; a field that is
 * such a message itself is in the row of that. `none` has what names its object, what proves a right (a token), and
 * what has nothing to do with answers. The first owner and receiver of a draft are free: it has no answers.
 */
export const rightsGiven: Record<string, Table<Right | 'scopes'>> = {
  CreateFormRequest: { none: 'idempotencyKey key managedBy' },
  ActivateFormRequest: { none: 'formId activationToken email idempotencyKey browser' },
  PublishFormVersionRequest: { none: 'formId idempotencyKey expectedVersionId allowBreaking' },
  ApplyFormRequest: {
    ownership: 'owner',
    none: 'key managedBy expectedVersionId allowBreaking idempotencyKey',
  },
  UpdateFormRequest: { none: 'formId key managedBy' },
  ArchiveFormRequest: { none: 'formId' },
  DeleteFormRequest: { none: 'formId' },
  ChangeFormOwnerRequest: { none: 'formId idempotencyKey', ownership: 'email' },

  FormDefinition: { none: 'name slug description' },
  DeliveryTarget: {},
  EmailDelivery: { destination: 'to', none: 'subject replyTo answererName' },
  Autoresponse: { none: 'to subject message' },
  // Who may not read the URL has its host alone, which is ignored.
  WebhookDelivery: { destination: 'url secret', none: 'urlHost' },
  Settings: {
    retention: 'retentionDays',
    none: `allowPartial submitLabel successMessage redirectUrl allowedOrigins embedOrigins closesAt maxSubmissions
      locale publicPage review compatibility onePerRespondent allowCorrection`,
  },
  SpamSettings: { none: 'honeypot minTime' },
  Theme: { none: 'accentColor logo mode' },
  Page: { none: 'title description' },
  FormField: {
    none: `id type label required description placeholder agentHint defaultValue hidden minLength maxLength pattern
      patternMessage min max step minItems maxItems accept maxBytes maxFiles page answeredBy allowOther icon minLabel
      maxLabel multiple personal`,
  },
  FieldOption: { none: 'label value' },
  Condition: {},
  ConditionList: {},
  Comparison: { none: 'field op value' },
  Translation: { none: 'name description' },
  FieldTranslation: {
    none: 'label description placeholder agentHint patternMessage minLabel maxLabel options rows',
  },
  SettingsTranslation: { none: 'submitLabel successMessage' },
  AutoresponseTranslation: { none: 'subject message' },

  CreateSubmissionRequest: { none: 'formId answers source idempotencyKey' },
  CreateDemoSubmissionRequest: { none: 'answers source idempotencyKey' },
  // Its holder reads what its maker may read, in this form and for ten minutes.
  CreateStreamTokenRequest: { none: 'formId' },
  DeleteSubmissionRequest: { none: 'submissionId' },
  EraseSubmissionsRequest: { none: 'value formId pageToken includeMentions' },

  // Its retention is that of questions of its own.
  CreateSessionRequest: {
    none: `formId schema expiresIn prefill metadata idempotencyKey returnUrl allowDecline returnOutcome
      retentionDays`,
  },
  // It has answers only if the key that made the session may have them sent.
  Callback: { destination: 'url', none: 'secret template' },
  // Its receiver gets the link of the session, which its maker has.
  Notify: { none: 'email webhookId message remindAfter' },
  // Whom the page asks for a code: they answer, and read what the page shows.
  SessionRespondent: { none: 'email' },
  SessionContext: { none: 'title text' },
  ContextItem: { none: 'label value kind' },
  DeclineSessionRequest: { none: 'sessionId reason idempotencyKey' },
  UpdateSessionRequest: {
    none: 'sessionId expiresIn extendBy expireTime prefill metadata answers idempotencyKey lenient step',
  },
  CancelSessionRequest: { none: 'sessionId' },
  SubmitSessionRequest: { none: 'sessionId answers answeredBy idempotencyKey source' },

  CreateWebhookRequest: {
    destination: 'url events formId secret',
    none: 'idempotencyKey traceparent template ed25519',
  },
  UpdateWebhookRequest: { destination: 'url events active', none: 'webhookId traceparent template ed25519' },
  WebhookHeaders: { none: 'values' },
  WebhookFilter: { destination: 'source fieldId value' },
  DeleteWebhookRequest: { none: 'webhookId' },
  RotateWebhookSecretRequest: { destination: 'webhookId', none: 'effectiveIn idempotencyKey' },
  TestWebhookRequest: { none: 'webhookId formId idempotencyKey' },
  // They go where they went.
  ReplayDeliveryRequest: { none: 'deliveryId idempotencyKey' },
  ReplayDeliveriesRequest: { none: 'webhookId createdAfter createdBefore formId idempotencyKey status' },

  // No scope more than its maker has, no other project and no day longer.
  CreateKeyRequest: { scopes: 'scopes project expiresIn', none: 'name idempotencyKey' },
  DeleteKeyRequest: { none: 'keyId revokeChildren' },

  GetHostedRequest: { none: 'sessionId formId preview posted browser begun' },
  OpenHostedSessionRequest: { none: 'formId issueToken browser begun' },
  PostHostedRequest: {
    none: 'sessionId formId goal goalPage page shown honeypot issueToken declineReason browser begun unproven language',
  },
  // The code proves the right to the page, in the browser that asked for it.
  SendRespondentCodeRequest: { none: 'sessionId formId email browser idempotencyKey' },
  GiveRespondentCodeRequest: { none: 'sessionId formId code browser idempotencyKey' },
  SubmitPostedFormRequest: {
    none: 'formId source idempotencyKey honeypot nextUrl pageUrl errorUrl language',
  },
  Input: { none: 'name values' },
  Violation: { none: 'path code message received' },

  CreateUploadRequest: { none: 'formId sessionId fieldId filename content idempotencyKey' },
  UploadFileRequest: { none: 'formId sessionId fieldId filename content idempotencyKey browser' },

  // Who takes a form over says whether those go on getting answers that the former owner added.
  FollowMailLinkRequest: {
    destination: 'keepRecipients',
    none: 'token stopScope signIn browser formerSessionToken',
  },
  StartMailRequest: { none: 'token' },

  RequestSignInRequest: { none: 'email deviceToken browser idempotencyKey' },
  SignInRequest: { none: 'token browser stay formerSessionToken idempotencyKey' },
  SignOutRequest: { none: 'everywhere' },
  EndOwnerSessionRequest: { none: 'sessionId' },
  ConfirmOwnedFormRequest: { none: 'formId' },
  CloseOwnedFormRequest: { none: 'formId' },
  ReopenOwnedFormRequest: { none: 'formId' },
  SetOwnedFormMailsRequest: { none: 'formId stopped' },
  AddFormRecipientRequest: { destination: 'email', none: 'formId idempotencyKey' },
  RemoveFormRecipientRequest: { none: 'formId email' },
  OfferOwnedFormRequest: { ownership: 'email', none: 'formId idempotencyKey' },
  WithdrawOwnedFormOfferRequest: { none: 'formId' },
  PublishOwnedFormTextsRequest: { none: 'formId expectedVersionId validateOnly' },
  OwnedFormTexts: { none: 'name description successMessage closeTime maxSubmissions' },
  OwnedFieldTexts: { none: 'fieldId label description' },
  DeleteOwnedFormRequest: { none: 'formId name' },
  MarkOwnedSubmissionsReadRequest: { none: 'formId submissionId' },
  ReplayOwnedDeliveryRequest: { none: 'submissionId deliveryId idempotencyKey' },
  DeleteOwnedSubmissionRequest: { none: 'submissionId' },
};

/** `session`: to what is saved in a session, and to its prefill. */
export type UsedRight = 'reading' | 'deletion' | 'session';

/** Names, separated by spaces, by right. */
type Table<R extends string> = Partial<Record<R | 'none', string>>;
