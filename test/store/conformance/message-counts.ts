import { expect, it } from 'vitest';
import type { Accepted } from '../../../src/engine/stores.ts';
import { eachWorld, type MessageOptions, type OpenStore, OTHER_PROJECT, T0, type World } from './world.ts';

const DAY_MS = 86_400_000;
const MIDNIGHT = (Math.floor(T0 / DAY_MS) + 1) * DAY_MS;

export function messageCountsConformance(open: OpenStore): void {
  const world = eachWorld(open);

  /** A publish of `count` messages under a limit, as kinds of answers. */
  async function publish(count: number, max: number, options: MessageOptions = {}): Promise<Accepted[]> {
    return world().store.accept(counted(world(), count, options), options.createdAtMs ?? T0, max);
  }

  const left = (remaining: number): Accepted => ({ kind: 'overDayLimit', remaining });
  const kinds = (answers: Accepted[]) => answers.map(({ kind }) => kind);

  it('takes messages up to the limit of a day, and refuses a publish that goes over it as a whole', async () => {
    expect(kinds(await publish(2, 3))).toEqual(['accepted', 'accepted']);
    expect(await publish(2, 3)).toEqual([left(1), left(1)]);
    expect(kinds(await publish(1, 3))).toEqual(['accepted']);
    expect(await publish(1, 3)).toEqual([left(0)]);
  });

  it('saves nothing of what it refuses', async () => {
    await publish(1, 1);
    const [refused] = counted(world(), 1, { deduplication: { hash: 'h', expiresAtMs: T0 + 1000 } });
    if (!refused) throw new Error('no message was made');
    expect(await world().store.accept([refused], T0, 1)).toEqual([left(0)]);
    expect(await world().find(refused.message)).toBeUndefined();
    expect(await world().statesOf(refused.message)).toEqual([]);
    const [again] = counted(world(), 1, { deduplication: { hash: 'h', expiresAtMs: T0 + 1000 } });
    expect(again && (await world().store.accept([again], T0, 2))).toEqual([{ kind: 'accepted' }]);
  });

  it('never goes over the limit, however many publish at once', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => publish(1 + (index % 3), 25)));
    const accepted = answers.flat().filter(({ kind }) => kind === 'accepted');
    expect(accepted).toHaveLength(25);
  });

  it('counts each project for itself', async () => {
    await publish(1, 1);
    expect(kinds(await publish(1, 1, { projectId: OTHER_PROJECT }))).toEqual(['accepted']);
    expect(await publish(1, 1)).toEqual([left(0)]);
  });

  it('begins anew at midnight UTC, and does not with the last millisecond of the day', async () => {
    await publish(1, 1);
    expect(await publish(1, 1, { createdAtMs: MIDNIGHT - 1 })).toEqual([left(0)]);
    expect(kinds(await publish(1, 1, { createdAtMs: MIDNIGHT }))).toEqual(['accepted']);
    expect(await publish(1, 1, { createdAtMs: MIDNIGHT + 1 })).toEqual([left(0)]);
  });

  it('does not count duplicates, of which no message is made', async () => {
    const deduplication = { hash: 'h', expiresAtMs: T0 + 1000 };
    expect(kinds(await publish(1, 2, { deduplication }))).toEqual(['accepted']);
    expect(kinds(await publish(1, 2, { deduplication }))).toEqual(['duplicate']);
    expect(kinds(await publish(1, 2))).toEqual(['accepted']);
    expect(await publish(1, 2)).toEqual([left(0)]);
  });

  it('counts without refusing where there is no limit, as for what the server makes itself', async () => {
    await world().store.accept(counted(world(), 3, {}), T0);
    expect(await publish(1, 2)).toEqual([left(0)]);
    expect(await publish(1, 4)).toEqual([{ kind: 'accepted' }]);
  });

  it('counts a message that a dead one is made of', async () => {
    const { dlqId } = await world().bury(T0);
    const [successor] = counted(world(), 1, {});
    if (!successor) throw new Error('no message was made');
    await world().store.reviveDead(successor.message.projectId, [{ dlqId, successor }]);
    expect(await publish(1, 1)).toEqual([left(0)]);
  });
}

function counted(world: World, count: number, options: MessageOptions) {
  return Array.from({ length: count }, () => ({ ...world.message(options), isCounted: true }));
}
