import { answersFile, type VersionToDescribe } from './answers-file.ts';
import { descriptorSet, protoSource } from './descriptor-set.ts';
import { versionSchema } from './json-schema.ts';
import { typeScriptSource } from './typescript.ts';

/** What a version's answers are, in each format. */
export const schemaFormats = {
  proto: {
    mediaType: 'text/x-protobuf; charset=utf-8',
    generate: (version) => protoSource(answersFile(version)),
  },
  descriptor_set: {
    mediaType: 'application/x-protobuf',
    ending: 'binpb',
    generate: (version) => descriptorSet(answersFile(version)),
  },
  json_schema: {
    mediaType: 'application/schema+json',
    ending: 'schema.json',
    generate: (version) => `${JSON.stringify(versionSchema(version), null, 2)}\n`,
  },
  typescript: {
    mediaType: 'text/plain; charset=utf-8',
    ending: 'ts',
    generate: typeScriptSource,
  },
} as const satisfies Record<string, SchemaFormat>;

/** Generates one of them: the file, and where it belongs in a folder of all forms. */
export function generateSchema(format: SchemaFormatName, version: VersionToDescribe): GeneratedSchema {
  const { mediaType, ending, generate }: SchemaFormat = schemaFormats[format];
  const { path, package: name } = answersFile(version);
  const content = Buffer.from(generate(version));
  return { content, mediaType, path: ending ? `${name.split('.').at(-1)}.${ending}` : path };
}

type SchemaFormat = {
  mediaType: string;
  /** Of a file named after the package; absent: where buf looks for it. */
  ending?: string;
  generate: (version: VersionToDescribe) => string | Uint8Array;
};

export type SchemaFormatName = keyof typeof schemaFormats;

export type GeneratedSchema = { content: Uint8Array; mediaType: string; path: string };
