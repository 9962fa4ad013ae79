import type { DescMethod, DescService } from '@bufbuild/protobuf';

/** What a table says of each RPC of a service, to be put into a map with those of other services. */
export function methodEntries<T>(
  service: DescService,
  table: Readonly<Record<string, T>>,
): [DescMethod, T][] {
  return service.methods.flatMap((method): [DescMethod, T][] => {
    const entry = table[method.localName];
    return entry === undefined ? [] : [[method, entry]];
  });
}

/** A table that says something of every RPC of a service, by the name of its method. */
export type MethodTable<S extends DescService, T> = { [M in keyof S['method']]: T };
