import { z } from 'zod';

/**
 * Makes the schemas of an API description out of those that serve. One with an id becomes a component; where what
 * callers send differs from what replies hold, it becomes two: `Field` is a field of a reply with every default
 * filled in, `FieldInput` one of a request. `override` changes what is said of each.
 */
export function createSchemas(override?: (schema: JsonSchema) => void): Schemas {
  const named: Record<Direction, Map<string, JsonSchema>> = { input: new Map(), output: new Map() };
  // Most routes share the schemas of errors: without this the first reader of the description holds up all others.
  const described: Record<Direction, Map<z.ZodType, JsonSchema>> = { input: new Map(), output: new Map() };

  function describedOnce(schema: z.ZodType, io: Direction): JsonSchema {
    const known = described[io].get(schema) ?? schemaOf(schema, io);
    described[io].set(schema, known);
    return known;
  }

  function schemaOf(schema: z.ZodType, io: Direction): JsonSchema {
    const made = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: overriding(io) });
    const text = JSON.stringify(made).replaceAll(/"#\/\$defs\/(\w+)"/g, (_, name) => refTo(name, io));
    const { $schema: _, $defs = {}, ...own } = JSON.parse(text);
    for (const [name, definition] of Object.entries<JsonSchema>($defs))
      named[io].set(name, withoutId(definition));
    if (typeof own.id !== 'string') return own;
    named[io].set(own.id, withoutId(own));
    return JSON.parse(`{"$ref":${refTo(own.id, io)}}`);
  }

  function overriding(io: Direction): (typeof overrides)[Direction] {
    return (context) => {
      overrides[io](context);
      override?.(context.jsonSchema);
    };
  }

  return {
    input: (schema) => describedOnce(schema, 'input'),
    output: (schema) => describedOnce(schema, 'output'),
    withComponents(document) {
      const different = differentOf(named);
      const nameOf = (name: string, io: string) =>
        io === 'input' && different.has(name) ? `${name}Input` : name;
      const components = Object.fromEntries([
        ...named.output,
        ...[...named.input].map(([name, schema]) => [nameOf(name, 'input'), schema]),
      ]);
      const text = JSON.stringify({ document, components }).replaceAll(
        /"#\/components\/schemas\/(\w+):(\w+)"/g,
        (_, name, io) => `"#/components/schemas/${nameOf(name, io)}"`,
      );
      return JSON.parse(text);
    },
  };
}

/** The names of the schemas that are not the same in requests and in replies, or refer to such ones. */
function differentOf({ input, output }: Record<Direction, Map<string, JsonSchema>>): Set<string> {
  const both = [...input].flatMap(([name, schema]) => {
    const reply = output.get(name);
    return reply === undefined
      ? []
      : [{ name, request: JSON.stringify(schema), reply: JSON.stringify(reply) }];
  });
  const different = new Set<string>();
  for (let before = -1; before < different.size; ) {
    before = different.size;
    for (const { name, request, reply } of both) {
      const refersToOne = [...different].some((other) => request.includes(refTo(other, 'input')));
      if (refersToOne || request.replaceAll(':input"', ':output"') !== reply) different.add(name);
    }
  }
  return different;
}

/** A reference whose name is decided at the end, as JSON. */
function refTo(name: string, io: Direction): string {
  return `"#/components/schemas/${name}:${io}"`;
}

/**
 * Of a request, defaults are said in words: generators take a property with a default for one that is always there.
 * Of a reply, further properties are allowed: they are no break of the interface.
 */
const overrides: Record<Direction, (context: { jsonSchema: { [key: string]: unknown } }) => void> = {
  input({ jsonSchema }) {
    withoutNoise(jsonSchema);
    const { default: unset, description } = jsonSchema;
    delete jsonSchema.default;
    if (typeof unset !== 'object' && unset !== undefined)
      jsonSchema.description = [description, `Default: \`${JSON.stringify(unset)}\`.`]
        .filter(Boolean)
        .join(' ');
  },
  output({ jsonSchema }) {
    withoutNoise(jsonSchema);
    delete jsonSchema.default;
    if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  },
};

/** Leaves out long patterns that say no more than the format or the type beside them. */
function withoutNoise(jsonSchema: { [key: string]: unknown }): void {
  const { format, type } = jsonSchema;
  if (type === 'integer' || format === 'date' || format === 'date-time') delete jsonSchema.pattern;
}

function withoutId(schema: JsonSchema): JsonSchema {
  const copy = { ...schema };
  delete copy.id;
  return copy;
}

type Direction = 'input' | 'output';

export type Schemas = {
  /** The schema of what callers send. */
  input(schema: z.ZodType): JsonSchema;
  /** The schema of what replies hold. */
  output(schema: z.ZodType): JsonSchema;
  /** The document with the names of the components decided, and all of them. */
  withComponents<T>(document: T): { document: T; components: Record<string, object> };
};

type JsonSchema = {
  [key: string]: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  id?: unknown;
};
