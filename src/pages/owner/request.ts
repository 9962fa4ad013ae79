import type { Request } from 'express';
import type { FormInputs } from '../../http/multipart.ts';

/** The id that the path names. */
export function idIn({ params }: Request): string {
  const { id } = params;
  return typeof id === 'string' ? id : '';
}

/** A query parameter as one text; empty if it is not given. */
export function queryOf({ query }: Request, name: string): string {
  const value = query[name];
  return typeof value === 'string' ? value : '';
}

/** The last value of an input; empty if it is not given. */
export function inputOf(inputs: FormInputs, name: string): string {
  return inputs.get(name)?.at(-1) ?? '';
}
