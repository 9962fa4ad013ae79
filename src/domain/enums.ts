/**
 * The value of an enum of the contract by its name as the database and REST have it; unspecified for any other text.
 */
export function enumValue<E extends Enum>(values: E, name: NameIn<E> | undefined): E[keyof E] {
  return (values[name?.toUpperCase() ?? ''] ?? values.UNSPECIFIED) as E[keyof E];
}

/** The name of a value; undefined for the unspecified one, and for those of a newer service. */
export function enumName<E extends Enum>(values: E, value: E[keyof E] | undefined): NameIn<E> | undefined {
  const names = Object.keys(values).filter((name) => name !== 'UNSPECIFIED' && values[name] === value);
  return names[0]?.toLowerCase() as NameIn<E> | undefined;
}

/** The names of an enum's values, in lower case. */
export type NameIn<E> = Lowercase<Exclude<Extract<keyof E, string>, 'UNSPECIFIED'>>;

type Enum = Readonly<Record<string, unknown>> & { UNSPECIFIED: unknown };
