import { describe, expect, it } from 'vitest';
import type { NewMessage } from '../../../src/engine/model.ts';
import { cancelMatching } from '../cancel-matching.ts';
import {
  activeRun,
  append,
  appended,
  ending,
  invocation,
  invoked,
  journalOf,
  NO_LIMITS,
  newRunMessage,
  runLogOf,
  startRun,
  waiter,
} from './run-world.ts';
import { bytes, delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const LATEST = { count: 100, order: 'latestFirst' } as const;

/** Runs and their journals: each entry key once, in the order of acceptance, and only while the run is active (P8). */
export function runsConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const accept = (messages: NewMessage[]) => world().save(messages);

  describe('the start of a run', () => {
    it('creates a run that is found by its id and by its key, with its first message in its journal', async () => {
      const header = { 'X-User': ['u'] };
      const first = await startRun(world(), { body: bytes('payload'), callerIp: '192.0.2.1', config: { header } });
      const run = await activeRun(world());
      expect(run).toMatchObject({ key: first.key, state: 'RUN_STARTED', version: 1, entries: 1, invokers: [] });
      expect(run).toMatchObject({ messageId: first.id, callerIp: '192.0.2.1', createdAtMs: T0 });
      expect(Object.getPrototypeOf(run.config.header)).toBeNull();
      expect(run.config).toEqual({ ...run.config, header, maxRetries: 3 });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toEqual(run);
      expect(await journalOf(world(), first)).toEqual(['0 step payload']);
    });

    it('returns the length of its journal, while it is active', async () => {
      const first = await startRun(world());
      await append(world(), first);
      expect(await world().store.runs.journalBytes({ projectId: PROJECT, id: 'r' })).toBe(30);
      expect(await world().store.runs.journalBytes({ projectId: OTHER_PROJECT, id: 'r' })).toBeUndefined();
      await world().store.runs.endRuns({ endings: [{ ending: ending(first), follows: [] }], nowMs: T0 });
      expect(await world().store.runs.journalBytes({ projectId: PROJECT, id: 'r' })).toBeUndefined();
    });

    it('is found only in its own project', async () => {
      const first = await startRun(world());
      expect(await world().store.runs.findActiveRun({ projectId: OTHER_PROJECT, id: 'r' })).toBeUndefined();
      expect(await world().store.runs.findRun({ projectId: OTHER_PROJECT, key: first.key })).toBeUndefined();
      const other = await startRun(world(), { projectId: OTHER_PROJECT });
      expect(await activeRun(world(), 'r', OTHER_PROJECT)).toMatchObject({ key: other.key });
    });

    it('is logged before its first message, at the same time', async () => {
      const first = await startRun(world());
      const { items } = await world().store.runLogs.listRunEvents({
        projectId: PROJECT,
        filter: {},
        page: { count: 10, order: 'earliestFirst' },
      });
      expect(items.map(({ state, atMs }) => [state, atMs])).toEqual([
        ['RUN_STARTED', T0],
        ['CREATED', T0],
      ]);
      expect(items[1]?.message?.key).toBe(first.key);
    });

    it('is not repeated while the run is active: the active run is returned', async () => {
      const first = await startRun(world());
      const again = newRunMessage(world(), { createdAtMs: T0 + 1 });
      const run = { id: 'r', createdAtMs: T0 };
      expect(await accept([again])).toEqual([{ kind: 'duplicate', messageId: first.id, run }]);
      expect(await world().find(again.message)).toBeUndefined();
      expect(await runLogOf(world())).toEqual(['RUN_STARTED', `CREATED ${first.key}`]);
    });

    it('happens once for one id in one publish, and in publishes that are saved together', async () => {
      const [a, b, c] = [newRunMessage(world()), newRunMessage(world()), newRunMessage(world())];
      const [ofOne, [third]] = await Promise.all([accept([a, b]), accept([c])]);
      expect(ofOne.map(({ kind }) => kind)).toEqual(['accepted', 'duplicate']);
      expect(third).toMatchObject({ kind: 'duplicate', messageId: a.message.id });
    });

    it('can be repeated once the run has ended, and then creates another run', async () => {
      const first = await startRun(world());
      await world().store.runs.endRuns({ endings: [{ ending: ending(first), follows: [] }], nowMs: T0 });
      const second = await startRun(world(), { createdAtMs: T0 + 5 });
      expect(await activeRun(world())).toMatchObject({ key: second.key, createdAtMs: T0 + 5 });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toMatchObject({
        state: 'RUN_SUCCESS',
      });
    });

    it('is refused, with its whole publish, when it is not later than the start of the previous run', async () => {
      const first = await startRun(world(), { createdAtMs: T0 + 5 });
      await world().store.runs.endRuns({ endings: [{ ending: ending(first), follows: [] }], nowMs: T0 });
      const other = newRunMessage(world(), { id: 'other', createdAtMs: T0 + 5 });
      const refusal = { kind: 'runTooEarly', latestMs: T0 + 5 };
      expect(await accept([other, newRunMessage(world(), { createdAtMs: T0 + 5 })])).toEqual([refusal, refusal]);
      expect(await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'other' })).toBeUndefined();
      expect(await accept([other, newRunMessage(world(), { createdAtMs: T0 + 6 })])).toMatchObject([
        { kind: 'accepted' },
        { kind: 'accepted' },
      ]);
    });
  });

  describe('a journal entry', () => {
    it('takes the next position, and its delivery has the length of the journal up to it', async () => {
      const first = await startRun(world(), { body: bytes('in') });
      const plans = [2, 3].map((step) =>
        appended(world(), first, { body: bytes(`p${step}`), entry: { kind: 'plan', entryKey: `p${step}` } }),
      );
      expect(await accept(plans)).toEqual([
        { kind: 'accepted', state: 'due', journal: { position: 1, bytes: 30 } },
        { kind: 'accepted', state: 'due', journal: { position: 2, bytes: 50 } },
      ]);
      expect(await journalOf(world(), first)).toEqual(['0 step in', '1 step p2', '2 step p3']);
      expect(
        await world().store.runs.readJournal({
          projectId: first.projectId,
          runKey: first.key,
          afterPosition: 0,
          toPosition: 1,
        }),
      ).toHaveLength(1);
      expect(await activeRun(world())).toMatchObject({ entries: 3, version: 1 });
    });

    it('is delivered with its position in the journal, whoever claims it', async () => {
      const first = await startRun(world());
      await append(world(), first, { entry: { entryKey: 's1' } });
      const { claimed } = await world().claim();
      expect(claimed.map(({ journal }) => journal)).toEqual([
        { position: 0, bytes: 10 },
        { position: 1, bytes: 30 },
      ]);
      const plain = await world().accept();
      const [own] = (await world().claim()).claimed;
      expect(own?.message).toEqual(plain);
      expect(own).not.toHaveProperty('journal');
    });

    it('is delivered with its position in the journal when it takes over the slot of another message', async () => {
      const settings = { flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
      const claimToken = world().number();
      const first = await startRun(world(), { state: { kind: 'claimed', claimToken, worker: 'w1' }, settings });
      const step = appended(world(), first, {
        state: { kind: 'claimed', claimToken: world().number(), worker: 'w1' },
        url: first.url,
        settings,
      });
      expect(await accept([step])).toMatchObject([{ state: 'flow', journal: { position: 1, bytes: 30 } }]);
      const handoff = { worker: 'w', claimToken: world().number(), bytesMax: 1_000 };
      const settled = await world().settle(first, claimToken, delivered(), T0, handoff);
      expect(settled).toMatchObject({ kind: 'saved', next: { journal: { position: 1, bytes: 30 } } });
    });

    it('is fetched by the endpoint when its delivery would be too long', async () => {
      const first = await startRun(world(), { entry: { lazyAboveBytes: 10 } });
      const step = await append(world(), first, { entry: { lazyAboveBytes: 29 } });
      expect(step).toMatchObject({ journal: { position: 1, bytes: 0 } });
      const { claimed } = await world().claim();
      expect(claimed.map(({ journal }) => journal?.bytes)).toEqual([10, 0]);
    });

    it('of a call is delivered with its own body, and so is its result unless it is too long', async () => {
      const first = await startRun(world());
      const call = {
        callType: 'toCallback',
        entry: { kind: 'toCallback', entryKey: 'c1' },
        body: bytes('request'),
      } as const;
      expect(await append(world(), first, call)).toMatchObject({ journal: { bytes: 7 } });
      const result = {
        callType: 'fromCallback',
        body: bytes('result'),
        entry: { kind: 'fromCallback', entryKey: 'f1' },
      } as const;
      expect(await append(world(), first, result)).toMatchObject({ journal: { bytes: 6 } });
      const long = { ...result, entry: { ...result.entry, entryKey: 'f2', lazyAboveBytes: 5 } };
      expect(await append(world(), first, long)).toMatchObject({ journal: { bytes: 0 } });
      expect(await journalOf(world(), first)).toEqual([
        '0 step',
        '1 toCallback request',
        '2 fromCallback result',
        '3 fromCallback result',
      ]);
    });

    it('takes its entry key once, and a repetition names the message that has it', async () => {
      const first = await startRun(world());
      const step = appended(world(), first);
      await accept([step]);
      const again = appended(world(), first, { body: bytes('other') });
      expect(await accept([again])).toEqual([{ kind: 'duplicate', messageId: step.message.id }]);
      expect(await activeRun(world())).toMatchObject({ entries: 2 });
      expect(await world().find(again.message)).toBeUndefined();
    });

    it('takes its entry key once in one publish, and in publishes that are saved together', async () => {
      const first = await startRun(world());
      const [a, b, c] = [appended(world(), first), appended(world(), first), appended(world(), first)];
      const [ofOne, [third]] = await Promise.all([accept([a, b]), accept([c])]);
      expect(ofOne).toMatchObject([{ kind: 'accepted' }, { kind: 'duplicate', messageId: a.message.id }]);
      expect(third).toMatchObject({ kind: 'duplicate', messageId: a.message.id });
      expect(await journalOf(world(), first)).toHaveLength(2);
    });

    it('of one run does not affect the entry keys of another run', async () => {
      const [one, other] = [await startRun(world()), await startRun(world(), { id: 'other' })];
      const publishes = [one, other].flatMap((first) =>
        ['s1', 's2', 's3'].map((entryKey) => accept([appended(world(), first, { entry: { entryKey } })])),
      );
      const results = (await Promise.all(publishes)).flat();
      expect(results.map((result) => result.kind === 'accepted' && result.journal?.position)).toEqual([
        1, 2, 3, 1, 2, 3,
      ]);
      expect(await append(world(), other, { entry: { entryKey: 's2' } })).toMatchObject({ kind: 'duplicate' });
    });

    it('is refused, with its whole publish, when the run has ended or never existed', async () => {
      const over = await startRun(world());
      await world().store.runs.endRuns({ endings: [{ ending: ending(over), follows: [] }], nowMs: T0 });
      const running = await startRun(world(), { id: 'other' });
      const plain = world().message();
      const publish = [appended(world(), running), plain, appended(world(), over)];
      expect(await accept(publish)).toEqual(publish.map(() => ({ kind: 'runOver' })));
      expect(await world().find(plain.message)).toBeUndefined();
      expect(await activeRun(world(), 'other')).toMatchObject({ entries: 1 });
      const unknown = appended(world(), over, { entry: { runKey: world().number() } });
      expect(await accept([unknown])).toEqual([{ kind: 'runOver' }]);
    });

    it('is refused, with its whole publish, when it was made for another version of the run', async () => {
      const first = await startRun(world());
      const publish = [
        appended(world(), first, { entry: { runVersion: 1 } }),
        appended(world(), first, { entry: { entryKey: 's2', runVersion: 2 } }),
      ];
      expect(await accept(publish)).toEqual([{ kind: 'runChanged' }, { kind: 'runChanged' }]);
      expect(await activeRun(world())).toMatchObject({ entries: 1 });
    });

    it('is refused when it has only settings for a step, and so has the last entry', async () => {
      const first = await startRun(world());
      const forStep = (entryKey: string) => appended(world(), first, { entry: { kind: 'stepConfig', entryKey } });
      expect(await accept([forStep('h1')])).toMatchObject([{ kind: 'accepted' }]);
      expect(await accept([forStep('h2')])).toEqual([{ kind: 'runOver' }]);
      expect(await accept([forStep('h1')])).toMatchObject([{ kind: 'duplicate' }]);
      await append(world(), first);
      const together = await Promise.all([accept([forStep('h3')]), accept([forStep('h4')])]);
      expect(together.flat().map(({ kind }) => kind)).toEqual(['accepted', 'runOver']);
      expect(await activeRun(world())).toMatchObject({ entries: 4 });
    });

    it('does not affect other publishes that are saved together with a refused one', async () => {
      const first = await startRun(world());
      const wrong = appended(world(), first, { entry: { entryKey: 's7', runVersion: 9 } });
      const [refused, saved] = await Promise.all([accept([wrong]), accept([appended(world(), first)])]);
      expect(refused).toEqual([{ kind: 'runChanged' }]);
      expect(saved).toMatchObject([{ kind: 'accepted', journal: { position: 1 } }]);
    });

    it('is saved without a run and a position when it only reports a failure', async () => {
      const first = await startRun(world());
      const { entry: _entry, ...callback } = appended(world(), first, { callType: 'failureCall' });
      expect(await accept([callback])).toEqual([{ kind: 'accepted', state: 'due' }]);
      expect(await runLogOf(world())).toContain(`CREATED ${callback.message.key}`);
      expect(await journalOf(world(), first)).toHaveLength(1);
    });
  });

  describe('a full journal', () => {
    const full = eachWorld(() => open({ ...NO_LIMITS, journalBytesMax: 50 }));

    it('refuses a longer journal, with the whole publish', async () => {
      const first = await startRun(full());
      const two = ['s1', 's2'].map((entryKey) => appended(full(), first, { entry: { entryKey, bytes: 21 } }));
      const refusal = { kind: 'journalFull', limit: 50 };
      expect(await full().save(two)).toEqual([refusal, refusal]);
      expect(await append(full(), first, { entry: { bytes: 40 } })).toMatchObject({ kind: 'accepted' });
      expect(await append(full(), first, { entry: { entryKey: 's2', bytes: 1 } })).toEqual(refusal);
    });

    it('refuses waits once a result has exceeded its limit', async () => {
      const first = await startRun(full());
      const result = appended(full(), first, { entry: { bytes: 41 } });
      const { message, claimToken } = await full().acceptClaimed();
      await full().settle(message, claimToken, { ...delivered(), follows: [result] });
      const wait = waiter(full(), first, 2);
      expect(await full().store.waiters.addWaiter({ waiter: wait, taken: undefined, nowMs: T0 })).toEqual({
        kind: 'journalFull',
        limit: 50,
      });
    });

    it('still returns repeated messages, and takes entries that deliveries do not show', async () => {
      const first = await startRun(full());
      await append(full(), first, { entry: { bytes: 40 } });
      expect(await append(full(), first, { entry: { bytes: 40 } })).toMatchObject({ kind: 'duplicate' });
      const child = invoked(full(), first, { id: 'child' });
      expect(await full().save([child])).toMatchObject([{ kind: 'accepted' }]);
    });
  });

  describe('an SDK that identifies itself', () => {
    function secondPhase(
      first: NewMessage['message'],
      options: { runVersion?: number; body?: string } = {},
    ): NewMessage {
      const { runVersion = 1, body = 'again' } = options;
      const newMessages = newRunMessage(world(), {
        body: bytes(body),
        callerIp: '198.51.100.7',
        config: { features: ['LazyFetch'] },
      });
      if (!newMessages.run || !newMessages.message.settings.run) throw new Error('no run begins with it');
      newMessages.message.settings.run.key = first.key;
      newMessages.entry = { runKey: first.key, kind: 'initial', entryKey: '0', bytes: 10, runVersion };
      newMessages.run.isBySdk = true;
      return newMessages;
    }
    const unknown = { config: { isUnknownSdk: true }, body: bytes('payload'), callerIp: '192.0.2.1' };

    it('sets the configuration and the first message of the run, which stays the same run', async () => {
      const first = await startRun(world(), unknown);
      const second = secondPhase(first);
      expect(await accept([second])).toEqual([{ kind: 'accepted', state: 'due', journal: { position: 0, bytes: 10 } }]);
      const run = await activeRun(world());
      expect(run).toMatchObject({ key: first.key, version: 2, entries: 1, messageId: second.message.id });
      expect(run).toMatchObject({ config: { isUnknownSdk: false, features: ['LazyFetch'] }, callerIp: '192.0.2.1' });
      expect(await journalOf(world(), first)).toEqual(['0 step again']);
      expect(await runLogOf(world())).toEqual(['RUN_STARTED', `CREATED ${first.key}`, `CREATED ${second.message.key}`]);
      expect(await append(world(), first)).toMatchObject({ kind: 'accepted', journal: { position: 1, bytes: 30 } });
    });

    it('sets the length of the journal to that of its own first message', async () => {
      const first = await startRun(world(), unknown);
      const second = secondPhase(first);
      if (second.entry) second.entry.bytes = 25;
      expect(await accept([second])).toMatchObject([{ journal: { position: 0, bytes: 25 } }]);
      expect(await append(world(), first)).toMatchObject({ journal: { position: 1, bytes: 45 } });
    });

    it('does so once, also within one publish', async () => {
      const first = await startRun(world(), unknown);
      const [second, third] = [secondPhase(first), secondPhase(first)];
      const run = { id: 'r', createdAtMs: T0 };
      expect(await accept([second, third])).toMatchObject([
        { kind: 'accepted' },
        { kind: 'duplicate', messageId: second.message.id, run },
      ]);
      expect(await accept([secondPhase(first)])).toMatchObject([{ kind: 'duplicate', messageId: second.message.id }]);
    });

    it('is too late when the run has continued, and repeats a start when its SDK was known', async () => {
      const advanced = await startRun(world(), unknown);
      await append(world(), advanced);
      expect(await accept([secondPhase(advanced)])).toMatchObject([{ kind: 'duplicate', messageId: advanced.id }]);
      await world().store.runs.endRuns({ endings: [{ ending: ending(advanced), follows: [] }], nowMs: T0 });
      const known = await startRun(world(), { createdAtMs: T0 + 1 });
      expect(await accept([secondPhase(known)])).toMatchObject([{ kind: 'duplicate', messageId: known.id }]);
    });

    it('must read the run again when it has changed, and is refused when it has ended', async () => {
      const first = await startRun(world(), unknown);
      expect(await accept([secondPhase(first, { runVersion: 0 })])).toEqual([{ kind: 'runChanged' }]);
      await world().store.runs.endRuns({ endings: [{ ending: ending(first), follows: [] }], nowMs: T0 });
      expect(await accept([secondPhase(first)])).toEqual([{ kind: 'runOver' }]);
    });
  });

  describe('an invocation', () => {
    it('is recorded in its parent, and its child has the parent as a waiter', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const child = invoked(world(), parent, { id: 'child' });
      expect(await accept([child])).toMatchObject([{ kind: 'accepted', journal: { position: 0 } }]);
      const record = child.run?.invoker?.message;
      expect(await activeRun(world(), 'child')).toMatchObject({ invokers: [record?.key], version: 1 });
      expect(await activeRun(world(), 'parent')).toMatchObject({ entries: 2, version: 1 });
      expect(await journalOf(world(), parent)).toEqual(['0 step']);
      expect(await world().store.runs.findRecords({ projectId: PROJECT, keys: [record?.key ?? 0] })).toEqual([record]);
      expect(await world().store.runs.findRecords({ projectId: OTHER_PROJECT, keys: [record?.key ?? 0] })).toEqual([]);
      expect(await runLogOf(world(), 'parent')).toEqual(['RUN_STARTED', `CREATED ${parent.key}`, 'INVOKED']);
      expect((await world().claim()).claimed.map(({ message }) => message.key)).toEqual([
        parent.key,
        child.message.key,
      ]);
    });

    it('leaves the positions after it to the entries of its parent', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      await accept([invoked(world(), parent, { id: 'child' })]);
      expect(await append(world(), parent)).toMatchObject({ journal: { position: 2, bytes: 30 } });
    });

    it('is not repeated by another child of the same step: the first one is returned', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const first = invoked(world(), parent, { id: 'child' });
      await accept([first]);
      const second = invoked(world(), parent, { id: 'another', createdAtMs: T0 + 1 });
      const run = { id: 'child', createdAtMs: T0 };
      expect(await accept([second])).toEqual([{ kind: 'duplicate', messageId: first.message.id, run }]);
      expect(await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'another' })).toBeUndefined();
      expect(await activeRun(world(), 'parent')).toMatchObject({ entries: 2 });
    });

    it('is not repeated in one publish, nor in publishes that are saved together', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const [a, b, c] = ['child', 'another', 'third'].map((id) => invoked(world(), parent, { id }));
      if (!a || !b || !c) throw new Error('there are three');
      const [ofOne, ofOther] = await Promise.all([accept([a, b]), accept([c])]);
      const duplicate = { kind: 'duplicate', messageId: a.message.id, run: { id: 'child', createdAtMs: T0 } };
      expect(ofOne).toMatchObject([{ kind: 'accepted' }, duplicate]);
      expect(ofOther).toEqual([duplicate]);
    });

    it('is refused when the parent has ended or has changed', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const stale = invoked(world(), parent, { id: 'child' });
      if (stale.run?.invoker) stale.run.invoker.entry.runVersion = 7;
      expect(await accept([stale])).toEqual([{ kind: 'runChanged' }]);
      await world().store.runs.endRuns({ endings: [{ ending: ending(parent), follows: [] }], nowMs: T0 });
      expect(await accept([invoked(world(), parent, { id: 'child' })])).toEqual([{ kind: 'runOver' }]);
      expect(await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'child' })).toBeUndefined();
    });

    it('of an active run waits for that run', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const child = await startRun(world(), { id: 'child', createdAtMs: T0 - 5 });
      const again = invoked(world(), parent, { id: 'child' });
      const run = { id: 'child', createdAtMs: T0 - 5 };
      expect(await accept([again])).toEqual([{ kind: 'duplicate', messageId: child.id, run }]);
      const recordKey = again.run?.invoker?.message.key ?? 0;
      expect(await activeRun(world(), 'child')).toMatchObject({ key: child.key, invokers: [recordKey], version: 2 });
      const [record] = await world().store.runs.findRecords({ projectId: PROJECT, keys: [recordKey] });
      expect(record?.settings.invoke).toMatchObject({ runKey: child.key, runId: 'child', createdAtMs: T0 - 5 });
      expect(await activeRun(world(), 'parent')).toMatchObject({ entries: 2 });
      expect(await runLogOf(world(), 'parent')).toContain('INVOKED');
      expect(await accept([invoked(world(), parent, { id: 'child' })])).toMatchObject([{ messageId: child.id }]);
      expect(await activeRun(world(), 'child')).toMatchObject({ invokers: [recordKey] });
    });

    it('is refused with its whole publish when a hundred invocations wait for the run, unless it is a repetition', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const invoke = (step: number) => invoked(world(), parent, { id: 'child' }, step);
      const refusal = { kind: 'tooManyInvokers', limit: 100 };
      const steps = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, nth) => invoke(from + nth));
      expect(await accept(steps(1, 101))).toEqual(Array(101).fill(refusal));
      await accept(steps(1, 60));
      expect(await accept(steps(61, 101))).toEqual(Array(41).fill(refusal));
      await accept(steps(61, 100));
      expect((await activeRun(world(), 'child')).invokers).toHaveLength(100);
      expect(await accept([invoke(101)])).toEqual([refusal]);
      expect(await accept([invoke(100)])).toMatchObject([{ kind: 'duplicate' }]);
      expect(await accept([invoked(world(), parent, { id: 'another' }, 101)])).toMatchObject([{ kind: 'accepted' }]);
    });

    it('returns its record among the requested ones, in their order', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      const keys: number[] = [];
      for (const step of [1, 2]) {
        const child = invoked(world(), parent, { id: `child ${step}` }, step);
        await accept([child]);
        keys.unshift(child.run?.invoker?.message.key ?? 0);
      }
      const found = await world().store.runs.findRecords({
        projectId: PROJECT,
        keys: [keys[0] ?? 0, world().number(), keys[1] ?? 0],
      });
      expect(found.map(({ key }) => key)).toEqual(keys);
    });
  });

  describe('messages that follow', () => {
    async function settleWith(follows: NewMessage[]) {
      const { message, claimToken } = await world().acceptClaimed();
      return world().settle(message, claimToken, { ...delivered(), follows });
    }

    it('enter the journal of their run like published ones', async () => {
      const first = await startRun(world());
      const result = appended(world(), first, { body: bytes('result') });
      const saved = { state: 'due', journal: { position: 1, bytes: 30 } };
      expect(await settleWith([result, world().message()])).toEqual({
        kind: 'saved',
        follows: [saved, { state: 'due' }],
      });
      expect(await journalOf(world(), first)).toEqual(['0 step', '1 step result']);
    });

    it('are dropped when the run has ended or has their entry keys, without affecting the others', async () => {
      const over = await startRun(world());
      await world().store.runs.endRuns({ endings: [{ ending: ending(over), follows: [] }], nowMs: T0 });
      const running = await startRun(world(), { id: 'other' });
      const step = appended(world(), running);
      await accept([step]);
      const follows = [appended(world(), over), world().message(), appended(world(), running)];
      expect(await settleWith(follows)).toEqual({
        kind: 'saved',
        follows: [{ state: 'dropped' }, { state: 'due' }, { state: 'dropped', messageId: step.message.id }],
      });
      expect(await world().find(follows[0]?.message as NewMessage['message'])).toBeUndefined();
      expect(await journalOf(world(), over)).toHaveLength(1);
    });

    it('may start a run, unless a run with its id is active', async () => {
      const [first, second] = [newRunMessage(world()), newRunMessage(world())];
      const begun = { state: 'due', journal: { position: 0, bytes: 10 } };
      const dropped = { state: 'dropped', messageId: first.message.id };
      expect(await settleWith([first, second])).toEqual({ kind: 'saved', follows: [begun, dropped] });
      expect(await activeRun(world())).toMatchObject({ key: first.message.key });
    });

    it('are saved for the log, but not sent, when they are results of invocations of a failed run', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      await accept([invoked(world(), parent, { id: 'child' }, 4)]);
      const failed = ending(parent, { state: 'RUN_FAILED' });
      await world().store.runs.endRuns({ endings: [{ ending: failed, follows: [] }], nowMs: T0 });
      const result = appended(world(), parent, { body: bytes('result'), entry: { entryKey: 's4' } });
      const other = appended(world(), parent, { body: bytes('no result'), entry: { entryKey: 's5' } });
      const dropped = { state: 'dropped' };
      expect(await settleWith([result, other])).toEqual({ kind: 'saved', follows: [dropped, dropped] });
      expect(await journalOf(world(), parent)).toEqual(['0 step', '2 step result']);
      const { claimed } = await world().claim();
      expect(claimed.map(({ message }) => message.key)).not.toContain(result.message.key);
      expect(await settleWith([appended(world(), parent, { entry: { entryKey: 's4' } })])).toMatchObject({
        kind: 'saved',
      });
      expect(await journalOf(world(), parent)).toHaveLength(2);
    });

    it('are not saved for the log of a cancelled run', async () => {
      const parent = await startRun(world(), { id: 'parent' });
      await accept([invoked(world(), parent, { id: 'child' })]);
      const cancelled = ending(parent, { state: 'RUN_CANCELED' });
      await world().store.runs.endRuns({ endings: [{ ending: cancelled, follows: [] }], nowMs: T0 });
      await settleWith([appended(world(), parent)]);
      expect(await journalOf(world(), parent)).toEqual(['0 step']);
    });
  });

  describe('data of runs', () => {
    it('is ignored by lists and cancels of plain messages', async () => {
      const first = await startRun(world());
      const plain = await world().accept();
      const { items } = await world().store.logs.listLogs({ projectId: PROJECT, filter: {}, page: LATEST });
      expect(items.map(({ message }) => message.key)).toEqual([plain.key]);
      expect(
        (await world().store.logs.listLogs({ projectId: PROJECT, filter: { state: ['CREATED'] }, page: LATEST })).items,
      ).toHaveLength(1);
      expect(await world().logsOf(first)).toEqual([]);
      expect(
        await world().store.messages.cancelById({ projectId: PROJECT, ids: [first.id, plain.id], nowMs: T0 }),
      ).toBe(1);
      expect(await cancelMatching(world().store, PROJECT, {}, -1, T0)).toEqual({ cancelled: 0 });
      expect(await world().find(first)).toEqual(first);
    });

    it('is found behind many entries of runs, page by page', async () => {
      const oldest = await world().accept({ createdAtMs: T0 - 1 });
      const first = await startRun(world());
      const steps = Array.from({ length: 1_500 }, (_, step) =>
        appended(world(), first, { entry: { entryKey: `s${step + 1}` } }),
      );
      await accept(steps);
      const found: number[] = [];
      let cursor: string | undefined;
      do {
        const page = await world().store.logs.listLogs({
          projectId: PROJECT,
          filter: {},
          page: { ...LATEST, ...(cursor && { cursor }) },
        });
        found.push(...page.items.map(({ message }) => message.key));
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(found).toEqual([oldest.key]);
    });

    it('is started, appended and ended a hundred at a time', async () => {
      const firsts = await Promise.all(
        Array.from({ length: 100 }, (_, index) => startRun(world(), { id: `r${index}` })),
      );
      const results = await Promise.all(firsts.map((first) => append(world(), first)));
      expect(results.every((result) => result.kind === 'accepted' && result.journal?.position === 1)).toBe(true);
      const ended = await Promise.all(
        firsts.map((first) =>
          world().store.runs.endRuns({ endings: [{ ending: ending(first), follows: [] }], nowMs: T0 }),
        ),
      );
      expect(ended.flat().every(({ kind }) => kind === 'ended')).toBe(true);
      expect((await world().claim({ limit: 200 })).claimed).toEqual([]);
    });
  });

  it('excludes an invocation whose parent does not exist', async () => {
    const parent = await startRun(world(), { id: 'parent' });
    const child = newRunMessage(world(), { id: 'child' });
    const record = invocation(world(), parent, { key: child.message.key, id: 'child' });
    record.entry.runKey = world().number();
    if (child.run) child.run.invoker = record;
    expect(await accept([child])).toEqual([{ kind: 'runOver' }]);
  });
}
