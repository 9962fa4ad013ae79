/** The words of mails. `{…}` is a placeholder; every language has the same ones. */
export const en = {
  stop: 'Stop these mails, or start them again',
  ignore: 'If you did not expect this, do nothing.',

  newSubmission: 'New submission: {form}',
  received: 'Received on {time}.',
  receivedNth: 'Received on {time}. It was submission {n} of that day.',
  noAnswers: 'Somebody submitted the form without an answer.',
  leftOut: 'The answers are too long for a mail, so a part of them is left out.',
  wholeForOwner: 'The link below shows them whole.',
  wholeForOthers: 'The owner of the form sees them whole, and so does an API key of its project: GET {url}',
  filesUntil: 'The links to files work until {day}, for everybody who has them.',
  filesLater: 'The files can be opened once you have confirmed your address.',
  open: 'Open this submission',
  submission: 'Submission {id}',
  whyOwner: 'You get this because you own the form “{form}”.',
  whyUnconfirmed:
    'You get this because the form “{form}” was published with this address as its owner’s. You have not confirmed that yet.',
  whyNamed:
    'You get this because the form “{form}” names this address as a recipient, and you have confirmed it.',
  whyAdded:
    'You get this because the owner of the form “{form}” added this address as a recipient, and you have confirmed it.',
  whyOperator: 'You get this because this address is the service’s own, and somebody tried its demo form.',
  whyAnswered: 'You get this once, because your address was given in the form “{form}”.',

  confirmTitle: 'Confirm your form',
  confirmText: 'The form “{form}” is published, and this address is to get its submissions.',
  confirmWebhookText:
    'The form “{form}” is published, and this address is to own it. Its submissions are sent to a program (a webhook), not by mail.',
  confirmButton: 'Confirm this address',
  page: 'Its page, for you to share',
  recipientTitle: 'Confirm that you want submissions',
  recipientText: 'The owner of the form “{form}” wants its submissions sent to this address.',
  recipientButton: 'Get these mails',
  takeOverTitle: 'Take over a form',
  takeOverText: 'This address was named as the new owner of the form “{form}”.',
  takeOverButton: 'Become the owner',
  whyAsked: 'Sent to {email} because somebody gave this address to the form service.',

  noticeSubject: 'Answers wait for you to confirm this address',
  noticeTitle: 'Answers wait for you',
  noticeText: 'Answers to the form “{form}” that wait for you: {n}.',
  noticeTextNameless: 'Answers to a form that wait for you: {n}.',
  noticeMore:
    'Somebody made the form without an API key and named this address as its owner. The answers are sent once you have confirmed that.',

  signInTitle: 'Sign in to your forms',
  signInText: 'This link opens the page of the forms that this address owns. It works once, for 15 minutes.',
  signInIgnore: 'If you did not ask for it, do nothing: without the link nobody can sign in.',
  signInButton: 'Sign in',
  whySignIn: 'Sent to {email} because somebody asked for a link to sign in with this address.',

  webhookTitle: 'A webhook was turned off',
  webhookText:
    'Nothing is sent to {host} any more (webhook {id}). It has failed for five days without a success.',
  webhookMore:
    'Submissions are kept. Once the receiver works again, turn the webhook on and replay what failed.',
  whyWebhook: 'You get this because you own a form that this webhook serves.',
};

/** The words of mails in one language. */
export type MailWords = Record<keyof typeof en, string>;
