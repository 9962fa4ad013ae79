import { isEmailAddress } from '../../domain/email-address.ts';
import { invalid } from '../../rpc/errors.ts';

/** Throws INVALID at `email` unless the text is one plain e-mail address. */
export function requireEmail(text: string): void {
  if (isEmailAddress(text)) return;
  throw invalid([
    text === ''
      ? { path: 'email', code: 'invalid_type', message: 'Required' }
      : { path: 'email', code: 'invalid_string', message: 'Expected an e-mail address' },
  ]);
}
