import { expect, it } from 'vitest';
import type { Claimed, LogEvent, Message, NewMessage } from '../../../src/engine/model.ts';
import type { Checkpointed, Settled } from '../../../src/engine/stores.ts';
import { activeRun, append, appended, ending, journalOf, NO_LIMITS, runLogOf, startRun } from './run-world.ts';
import { delivered, eachWorld, type OpenStore, settlement, T0 } from './world.ts';

/**
 * The delivered messages of a checkpoint and its new entries are saved together, while the call owns the delivered
 * ones.
 */
export function checkpointConformance(open: OpenStore): void {
  const world = eachWorld(open);

  /** A run whose first message is claimed. */
  async function called(id = 'r'): Promise<Claimed> {
    await startRun(world(), { id });
    const [claimed] = (await world().claim()).claimed;
    if (!claimed) throw new Error('nothing was claimed');
    return claimed;
  }

  /** A step that starts at once, if no limit holds it back. */
  function atOnce(first: Message, stepId: number, settings: object = {}): NewMessage {
    const state = { kind: 'claimed', claimToken: world().number(), worker: 'w1' } as const;
    return appended(world(), first, { entry: { entryKey: `s${stepId}` }, state, settings });
  }

  function save(
    done: readonly Pick<Claimed, 'message' | 'claimToken'>[],
    follows: NewMessage[],
  ): Promise<Checkpointed> {
    const settlements = done.map(({ message, claimToken }) => settlement(message, claimToken, delivered(T0)));
    return world().store.messages.checkpoint({ done: settlements, follows, nowMs: T0 });
  }

  function claimOf({ message, state }: NewMessage): Pick<Claimed, 'message' | 'claimToken'> {
    return { message, claimToken: state.kind === 'claimed' ? state.claimToken : -1 };
  }

  /** The states of the message in the log of the run. */
  async function statesOf({ key }: Message): Promise<string[]> {
    return (await runLogOf(world())).flatMap((event) => {
      const [state = '', of] = event.split(' ');
      return of === String(key) ? [state] : [];
    });
  }

  it('settles delivered messages, and saves the following ones as claimed', async () => {
    const first = await called();
    const one = atOnce(first.message, 1);
    expect(await save([first], [one])).toEqual({
      kind: 'saved',
      follows: [{ state: 'claimed', journal: { position: 1, bytes: 30 } }],
    });
    expect(await statesOf(first.message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
    expect(await statesOf(one.message)).toEqual(['CREATED', 'ACTIVE']);
    expect(await journalOf(world(), first.message)).toHaveLength(2);
    expect(await save([claimOf(one)], [])).toEqual({ kind: 'saved', follows: [] });
    expect(await world().find(one.message)).toBeUndefined();
  });

  it('does nothing when one of its messages was claimed again, or is settled', async () => {
    const first = await called();
    const plans = [1, 2].map((stepId) => atOnce(first.message, stepId));
    const [one, two] = plans.map(claimOf) as [Claimed, Claimed];
    await save([first], plans);
    await world().store.messages.release({ claims: [{ ...two.message, claimToken: two.claimToken }], nowMs: T0 });
    const step = atOnce(first.message, 3);
    expect(await save([one, two], [step])).toEqual({ kind: 'stale' });
    expect(await save([first], [step])).toEqual({ kind: 'stale' });
    expect(await journalOf(world(), first.message)).toHaveLength(3);
    expect(await statesOf(one.message)).toEqual(['CREATED', 'ACTIVE']);
    expect(await save([one], [step])).toMatchObject({ kind: 'saved' });
  });

  it('saves one of two with the same message, even in one transaction', async () => {
    const first = await called();
    const results = await Promise.all([1, 2].map((stepId) => save([first], [atOnce(first.message, stepId)])));
    expect(results.map(({ kind }) => kind)).toEqual(['saved', 'stale']);
    expect(await journalOf(world(), first.message)).toHaveLength(2);
  });

  it('keeps an existing entry of the journal, and returns its message', async () => {
    const first = await called();
    await append(world(), first.message);
    const [holder] = await world().store.runs.readJournal({
      projectId: first.message.projectId,
      runKey: first.message.key,
      afterPosition: 0,
    });
    const again = await save([first], [atOnce(first.message, 1)]);
    expect(again).toEqual({ kind: 'saved', follows: [{ state: 'dropped', messageId: holder?.messageId }] });
    expect(await journalOf(world(), first.message)).toHaveLength(2);
    expect(await statesOf(first.message)).toContain('DELIVERED');
  });

  it('does nothing for a run that has ended or changed', async () => {
    const first = await called();
    const step = atOnce(first.message, 1);
    const changed = { ...step, ...(step.entry && { entry: { ...step.entry, runVersion: 7 } }) };
    expect(await save([first], [changed])).toEqual({ kind: 'runChanged' });
    await activeRun(world());
    await world().store.runs.endRuns({ endings: [{ ending: ending(first.message), follows: [] }], nowMs: T0 });
    expect(await save([first], [step])).toEqual({ kind: 'runOver' });
    expect(await runLogOf(world())).not.toContain(`DELIVERED ${first.message.key}`);
  });

  it('lets a lane hold back the following messages, once the delivered ones have left it', async () => {
    const flowControl = { key: 'k', parallelism: 1, rate: 2, periodS: 60 };
    const first = await called();
    const [one, two, three] = [1, 2, 3].map((stepId) => atOnce(first.message, stepId, { flowControl })) as [
      NewMessage,
      NewMessage,
      NewMessage,
    ];
    expect(await save([first], [one])).toMatchObject({ follows: [{ state: 'claimed' }] });
    expect(await save([claimOf(one)], [two])).toMatchObject({ follows: [{ state: 'claimed' }] });
    expect(await save([claimOf(two)], [three])).toMatchObject({ follows: [{ state: 'flow' }] });
    expect((await world().claim({}, T0 + 59_999)).claimed).toEqual([]);
    expect((await world().claim({}, T0 + 60_000)).claimed.map(({ message }) => message.key)).toEqual([
      three.message.key,
    ]);
  });

  /** The end of the run that started with `first`, by `by`, with its last step. */
  function end(
    first: Claimed,
    { message, claimToken }: Pick<Claimed, 'message' | 'claimToken'>,
    lastStep: NewMessage,
  ): Promise<Settled> {
    const change = { ...delivered(T0), ending: ending(first.message), lastStep };
    return world().settle(message, claimToken, change);
  }

  it('saves a last step with the end, as delivered, whatever the capacity of its lane', async () => {
    const flowControl = { key: 'k', rate: 1, periodS: 60 };
    const first = await called();
    const [one, last] = [1, 2].map((stepId) => atOnce(first.message, stepId, { flowControl })) as [
      NewMessage,
      NewMessage,
    ];
    await save([first], [one]);
    const events = ['CREATED', 'ACTIVE', 'DELIVERED'].map((state) => ({ atMs: T0, state }) as LogEvent);
    expect(await end(first, claimOf(one), { ...last, events })).toEqual({ kind: 'saved' });
    expect(await journalOf(world(), first.message)).toHaveLength(3);
    expect((await runLogOf(world())).slice(-5)).toEqual([
      `DELIVERED ${one.message.key}`,
      `CREATED ${last.message.key}`,
      `ACTIVE ${last.message.key}`,
      `DELIVERED ${last.message.key}`,
      'RUN_SUCCESS',
    ]);
    expect(await world().find(last.message)).toBeUndefined();
  });

  it('ends nothing with a last step for which the journal has another result', async () => {
    const first = await called();
    await append(world(), first.message);
    const log = await runLogOf(world());
    expect(await end(first, first, atOnce(first.message, 1))).toEqual({ kind: 'stepTaken' });
    expect(await runLogOf(world())).toEqual(log);
    await activeRun(world());
  });

  const full = eachWorld(() => open({ ...NO_LIMITS, journalBytesMax: 50 }));

  it('does nothing when the journal would be too long', async () => {
    const first = await startRun(full());
    const [{ claimToken = -1 } = {}] = (await full().claim()).claimed;
    const steps = ['s1', 's2'].map((entryKey) => appended(full(), first, { entry: { entryKey, bytes: 21 } }));
    const done = [settlement(first, claimToken, delivered(T0))];
    expect(await full().store.messages.checkpoint({ done, follows: steps, nowMs: T0 })).toEqual({
      kind: 'journalFull',
      limit: 50,
    });
    expect((await runLogOf(full())).at(-1)).toBe(`ACTIVE ${first.key}`);
    const [one] = steps;
    expect(await full().store.messages.checkpoint({ done, follows: one ? [one] : [], nowMs: T0 })).toMatchObject({
      kind: 'saved',
    });
  });
}
