import type { Actors } from '../world/types.ts';
import { ask } from './askers.ts';
import { erase, keepWebhooks, read, replayMails, rotateKeys, setClocks } from './keepers.ts';
import { changeForms, makeForms } from './makers.ts';
import { own } from './owners.ts';
import type { Town } from './town.ts';
import { rush, visit } from './visitors.ts';

/** Keys, owners and visitors, who act at random until the days end. */
export const act: Actors = async (world) => {
  const town: Town = {
    world,
    beganAt: world.now(),
    forms: [],
    hooks: [],
    submissions: [],
    people: [],
    ended: [],
  };
  const random = (name: string) => world.random.fork(name);
  const visitors = Array.from({ length: VISITORS }, (_, index) => `visitor ${index + 1}`);
  await Promise.all([
    makeForms(town, 'maker', random('maker')),
    changeForms(town, 'changer', random('changer')),
    keepWebhooks(town, 'keeper', random('keeper')),
    replayMails(town, 'replayer', random('replayer')),
    rotateKeys(town, 'rotator', random('rotator')),
    erase(town, 'eraser', random('eraser')),
    ask(town, 'asker', random('asker')),
    read(town, 'reader', random('reader')),
    own(town, random('owners')),
    rush(town, 'crowd', random('crowd')),
    setClocks(town, random('clocks')),
    ...visitors.map((name) => visit(town, name, random(name))),
  ]);
};

const VISITORS = 5;
