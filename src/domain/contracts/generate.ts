import { answersFile, type VersionToDescribe } from './answers-file.ts';
import { descriptorSet, protoSource } from './descriptor-set.ts';
import { versionSchema } from './json-schema.ts';
import { typeScriptSource } from './typescript.ts';

/** What a version's answers are, in each format. */
export const schemaFormats = {
  proto: {
    mediaType: 'text/x-protobuf; charset=utf-8',
    pathOf: ({ path }) => path,
    generate: (version) => protoSource(answersFile(version)),
  },
  descriptor_set: {
    mediaType: 'application/x-protobuf',
    pathOf: ({ package: name }) => `${lastOf(name)}.binpb`,
    generate: (version) => descriptorSet(answersFile(version)),
  },
  json_schema: {
    mediaType: 'application/schema+json',
    pathOf: ({ package: name }) => `${lastOf(name)}.schema.json`,
    generate: (version) => `${JSON.stringify(versionSchema(version), null, 2)}\n`,
  },
  typescript: {
    mediaType: 'text/plain; charset=utf-8',
    pathOf: ({ package: name }) => `${lastOf(name)}.ts`,
    generate: typeScriptSource,
  },
} as const satisfies Record<string, SchemaFormat>;

/** Generates one of them: the file, and where it belongs in a folder of all forms. */
export function generateSchema(format: SchemaFormatName, version: VersionToDescribe): GeneratedSchema {
  const { mediaType, pathOf, generate }: SchemaFormat = schemaFormats[format];
  const content = generate(version);
  return { content: Buffer.from(content), mediaType, path: pathOf(answersFile(version)) };
}

function lastOf(name: string): string {
  return name.split('.').at(-1) ?? name;
}

type SchemaFormat = {
  mediaType: string;
  pathOf: (file: { path: string; package: string }) => string;
  generate: (version: VersionToDescribe) => string | Uint8Array;
};

export type SchemaFormatName = keyof typeof schemaFormats;

export type GeneratedSchema = { content: Uint8Array; mediaType: string; path: string };
