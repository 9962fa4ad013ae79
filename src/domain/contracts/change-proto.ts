import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ChangeKind,
  Consumer,
  type DefinitionChangeSchema,
} from '../../../gen/headlessforms/v1/changes_pb.js';
import type { ChangeKind as ChangeKindName, Consumer as ConsumerName } from './change-kinds.ts';
import type { DefinitionChange } from './changes.ts';

/** The typed message of a change. */
export function changeToMessage(change: DefinitionChange): MessageInitShape<typeof DefinitionChangeSchema> {
  return {
    path: change.path,
    kind: ChangeKind[change.kind.toUpperCase() as Uppercase<ChangeKindName>],
    breaks: change.breaks.map((name) => Consumer[name.toUpperCase() as Uppercase<ConsumerName>]),
    backwardCompatible: change.backward,
    forwardCompatible: change.forward,
  };
}
