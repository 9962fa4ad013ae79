import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html } from '../../../domain/text/html.ts';
import type { Language } from '../../../text/words.ts';

/** The attributes of a control that stands for the whole field. */
export function common(field: Field, view: ControlView): Html {
  return attributes({
    class: 'control',
    ...identity(field, view),
    ...described(view),
  });
}

/** The attributes that name an input. */
export function identity(field: Field, view: ControlView) {
  return { id: `${field.id}.0`, name: field.id, disabled: !view.visible };
}

/** The attributes that say what is said of an input. */
export function described({ describedBy, problem }: Pick<ControlView, 'describedBy' | 'problem'>) {
  return { 'aria-describedby': describedBy, 'aria-invalid': problem === undefined ? undefined : 'true' };
}

/** The language of a text of the form's author where it is not the page's, and its direction if that is not known. */
export function ownDir({ ownDirection, theirs }: Pick<Language, 'ownDirection' | 'theirs'>): Html {
  return attributes({ dir: ownDirection, ...theirs });
}

/** What a field is shown with. */
export type FieldView = {
  language: Language;
  /** The values of its inputs, as texts. */
  texts: readonly string[];
  /** The values of its further inputs, by the part of the answer that each stands for. */
  parts: ReadonlyMap<string, readonly string[]>;
  /** What is wrong with its answer. */
  problem: string | undefined;
  /** The parts of the answer that are wrong, if not all of it is. */
  problemParts?: readonly string[];
  /** Where a button has just moved an option of a ranking. */
  moved?: { to: number; by: -1 | 1 } | undefined;
  visible: boolean;
  /** What is known of uploaded files, by upload id. */
  files: KnownFiles;
};

/** The name and the size in bytes, as far as they are known, of uploaded files by upload id. */
export type KnownFiles = ReadonlyMap<string, KnownFile>;

export type KnownFile = { name: string; size?: number };

/** `describedBy` are the ids of the texts about the field. */
export type ControlView = FieldView & { describedBy: string | undefined };
