import type { z } from 'zod';
import type { Violation } from '../errors/violations.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import type { PatternTest } from '../patterns/pattern.ts';

/**
 * Everything that one type of field does in its own way. `Attributes` are those of a checked field that it
 * reads.
 */
export type FieldTypeRules<Attributes> = {
  /** The shapes of the attributes that a field of this type may have beside those that all may have. */
  attributes: AttributeShapes;
  /** The values of attributes that were not given, where they depend on the type. */
  defaults?: (field: Attributes, form: FormFacts) => Partial<Attributes>;
  /** What is wrong between the attributes of a field, which each have the right shape; `sent` is the whole input. */
  problems?: (field: Attributes, sent: Readonly<Record<string, unknown>>, path: string) => Violation[];
  /** Prepares the check of a field's answers. It is never given an empty one. */
  check: (field: Attributes) => AnswerCheck;
  /** What an answer is in the message that is generated of a form; absent if there is none. */
  answerType?: (field: Attributes) => AnswerType;
  /** The JSON Schema of an answer. `needed`: there must be one. */
  jsonSchema: (field: Attributes, needed: boolean) => JsonObject;
  /** A made-up answer; undefined if none can be made up. It need not pass the check. */
  sample: (field: Attributes) => Json | undefined;
  /** An answer as people read it; `locale` is a BCP 47 tag. */
  inWords: (answer: unknown, field: Attributes, locale: string) => string;
  /** The parts of an answer that one that is required must have and lacks, if there are such. */
  lacking?: (answer: Json, field: Attributes) => readonly string[];
  /**
   * Reads the values of an HTML form's input as an answer; what can't be read stays text for the check to refuse.
   * `part` has the values of the field's further inputs; `typed` says how to read what a person has typed.
   */
  readInput: (
    values: readonly string[],
    field: Attributes,
    part: (name: string) => readonly string[],
    typed?: Typed,
  ) => Json;
  /** The field's further inputs, by what follows its id and a dot in their names. */
  parts?: (field: Attributes) => readonly string[];
  /** An answer as `readInput` reads it, by part; '' is the input that is named by the field alone. */
  toInputs?: (answer: Json, field: Attributes) => Readonly<Record<string, readonly string[]>>;
  /** What shows the field on the hosted page. */
  control: Control;
  /** The type of the HTML input of a `line`; a text if absent. */
  input?: LineInput;
  /** A text as it is checked, compared and stored, by whatever door it comes. */
  fold?: (text: string) => string;
  /** What the texts of its inputs stand for where conditions of the hosted page ask about them. */
  kind: 'text' | 'email' | 'phone' | 'url' | 'number' | 'boolean' | 'list' | 'parts';
  /** What it takes as uploaded files; undefined if its answers name none. */
  uploads?: (field: Attributes) => UploadLimits | undefined;
  /** The JSON Schema for an agent, where it says less than that of all answers. */
  agentSchema?: (field: Attributes) => JsonObject;
  /** Whether an answer of spaces alone is none where one is required. */
  needsMoreThanSpaces?: boolean;
  /** Whether a JSON Schema tells the type, so that a question to an agent need not. */
  toldBySchema?: boolean;
  /** Whether an answer is one or more of the field's options, which are counted; a list of them has no order. */
  choosesOptions?: boolean;
  /** Whether an answer has all of the field's options, and says by their order what it means. */
  ordersOptions?: boolean;
};

/**
 * Types of answers in proto; `File`, `Address` and `Signature` are messages of their own. A field that gets another one
 * gets a new number, so what a field of some attributes has may never change.
 */
export type AnswerType =
  | 'string'
  | 'double'
  | 'int32'
  | 'bool'
  | 'repeated string'
  | 'File'
  | 'repeated File'
  | 'Address'
  | 'Signature'
  | 'map<string, string>'
  | 'map<string, google.protobuf.ListValue>'
  | 'google.protobuf.Value';

/** `accept` absent: any type of file. */
export type UploadLimits = { accept?: readonly string[] | undefined; maxBytes: number };

/** What defaults depend on beside the field: whether its form was made without a key. */
export type FormFacts = { keyless: boolean };

/**
 * How texts are read that a person has typed: numbers in the language of a BCP 47 tag, without one as programs write
 * them. `checksYears`: a year before 1000 is a typing error where the field doesn't ask for such.
 */
export type Typed = { language?: string | undefined; checksYears?: boolean };

/** Returns what is wrong with an answer at `path`. The answer is never an empty one; `match` tries patterns. */
export type AnswerCheck = (answer: Json, path: string, match: PatternTest) => readonly Violation[];

/** What is wrong with most answers. */
export const noViolations: readonly Violation[] = [];

/** A control of the hosted page: `line` is an input of one line, `yes_no` two radio buttons; a `statement` has none. */
export type Control =
  | 'line'
  | 'textarea'
  | 'select'
  | 'radios'
  | 'checkboxes'
  | 'yes_no'
  | 'checkbox'
  | 'files'
  | 'rating'
  | 'scale'
  | 'ranking'
  | 'matrix'
  | 'address'
  | 'signature'
  | 'statement';

/** The types of HTML inputs that are one line of text or look like it. */
export type LineInput = 'text' | 'email' | 'url' | 'tel' | 'number' | 'date' | 'time' | 'datetime-local';

type AttributeShapes = Readonly<Record<string, z.ZodType>>;

/** The checked values of attributes with these shapes. */
export type AttributesOf<Shapes extends AttributeShapes> = z.output<z.ZodObject<Shapes>>;

/** The least length of an answer: an empty text or list is none, so where one is needed, it has something in it. */
export function atLeast(least: number | undefined, needed: boolean): number {
  return Math.max(least ?? 0, needed ? 1 : 0);
}

/** A checked answer of several texts, or lists of texts, by the part that each is of. */
export function inputsOfParts(answer: Json): Record<string, string[]> {
  if (!isObject(answer)) return {};
  return Object.fromEntries(
    Object.entries(answer).map(([part, texts]) => [part, [texts].flat().map(String)]),
  );
}
