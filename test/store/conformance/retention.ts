import { describe, expect, it } from 'vitest';
import { append, appended, ending, invoked, journalOf, newRunMessage, runLogOf, startRun } from './run-world.ts';
import { bytes, delivered, eachWorld, lastFailure, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

/** Log entries of one day may be dropped together, once the whole day has expired. */
const DAY = 86_400_000;

export function retentionConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const drop = async (limits: { logs?: number; dead?: number; minutes?: number; now?: number; rowsMax?: number }) => {
    let pieces = 0;
    let more = true;
    while (more) {
      pieces += 1;
      more = await world().store.retention.dropExpired({
        logsBeforeMs: limits.logs ?? 0,
        deadBeforeMs: limits.dead ?? 0,
        minutesBeforeMs: limits.minutes ?? 0,
        keysUsedBeforeMs: 0,
        nowMs: limits.now ?? (limits.logs ?? 0) + 2 * DAY, // with logs that are kept for two days
        rowsMax: limits.rowsMax ?? 1_000,
      });
    }
    return pieces;
  };
  const listAll = async (projectId = PROJECT) => {
    const page = await world().store.logs.listLogs({
      projectId,
      filter: {},
      page: { count: 1_000, order: 'earliestFirst' },
    });
    return page.items.map(({ atMs, state }) => [atMs - T0, state]);
  };

  it('drops log entries older than the limit, in every project, and no others', async () => {
    for (const projectId of [PROJECT, OTHER_PROJECT]) {
      const { message, claimToken } = await world().acceptClaimed({ projectId });
      await world().settle(message, claimToken, delivered(T0 + 10 * DAY));
    }
    await drop({ logs: T0 + 10 * DAY });
    for (const projectId of [PROJECT, OTHER_PROJECT])
      expect(await listAll(projectId)).toEqual([[10 * DAY, 'DELIVERED']]);
    await drop({ logs: T0 + 11 * DAY });
    expect(await listAll()).toEqual([]);
  });

  it('works in chunks and returns when nothing is left', async () => {
    for (let index = 0; index < 25; index++) await world().accept({ createdAtMs: T0 + index * DAY });
    expect(await drop({ logs: T0 + 20 * DAY, rowsMax: 5 })).toBeGreaterThanOrEqual(5);
    expect(await listAll()).toHaveLength(5);
  });

  it('keeps the content of a waiting message when all of its log entries are dropped', async () => {
    const message = await world().accept({ notBeforeMs: T0 + 1_000_000 });
    await drop({ logs: T0 + DAY });
    expect(await world().find(message)).toEqual(message);
    const { claimed } = await world().claim({}, T0 + 1_000_000);
    expect(claimed.map((one) => one.message)).toEqual([message]);
    expect(await world().statesOf(message)).toEqual(['ACTIVE']);
  });

  it('keeps the content of a DLQ entry when all of its log entries are dropped, until the entry is dropped as well', async () => {
    const { message, dlqId } = await world().acceptDead(T0);
    await drop({ logs: T0 + DAY });
    expect((await world().store.dead.findDead({ projectId: PROJECT, dlqId }))?.message).toEqual(message);
    await drop({ logs: T0 + DAY, dead: T0 });
    expect(await world().store.dead.findDead({ projectId: PROJECT, dlqId })).toBeDefined();
    await drop({ logs: T0 + DAY, dead: T0 + 1 });
    expect(await world().store.dead.findDead({ projectId: PROJECT, dlqId })).toBeUndefined();
    // The key can be reused only when nothing of the message is left.
    expect(await world().accept({ key: message.key })).toBeDefined();
  });

  it('drops contents once no row refers to them: after a delivery, a cancel, a deleted DLQ entry', async () => {
    const { message: sent, claimToken } = await world().acceptClaimed();
    await world().settle(sent, claimToken, delivered());
    const cancelled = await world().accept();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [cancelled.id], nowMs: T0 });
    const early = await world().acceptDead(T0);
    const late = await world().acceptDead(T0);
    await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [early.dlqId] });
    await drop({ logs: T0 + DAY });
    await world().store.dead.deleteDead({ projectId: PROJECT, dlqIds: [late.dlqId] });
    for (const { key } of [sent, cancelled, early.message, late.message]) {
      expect(await world().accept({ key })).toMatchObject({ key });
    }
  });

  it('drops deduplication ids whose window has ended', async () => {
    await world().accept({ deduplication: { hash: 'h', expiresAtMs: T0 + 10 } });
    await drop({ now: T0 + 9 });
    const second = world().message({ deduplication: { hash: 'h', expiresAtMs: T0 + 10 } });
    expect(await world().save([second], T0 + 9)).toMatchObject([{ kind: 'duplicate' }]);
    await drop({ now: T0 + 10 });
    // With a clock that was set back, only the row itself would show it.
    expect(await world().save([second], T0 + 9)).toMatchObject([{ kind: 'accepted' }]);
  });

  describe('of runs', () => {
    it('keeps the journal of an active run, whose log continues when all of it was dropped', async () => {
      const first = await startRun(world(), { notBeforeMs: T0 + 1_000_000, body: bytes('payload') });
      await append(world(), first, { notBeforeMs: T0 + 1_000_000, body: bytes('step') });
      await drop({ logs: T0 + DAY });
      expect(await journalOf(world(), first)).toEqual(['0 step payload', '1 step step']);
      await world().store.runs.endRuns({
        endings: [{ ending: ending(first, { state: 'RUN_CANCELED', atMs: T0 + 2_000 }), follows: [] }],
        nowMs: T0 + 2_000,
      });
      expect(await runLogOf(world())).toContain('RUN_CANCELED');
    });

    it('keeps the message that triggered a run, though another message has become its first', async () => {
      const claimToken = world().number();
      const begun = await startRun(world(), {
        config: { isUnknownSdk: true },
        state: { kind: 'claimed', claimToken, worker: 'w1' },
      });
      const second = newRunMessage(world(), { notBeforeMs: T0 + 1_000_000 });
      if (!second.run || !second.message.settings.run) throw new Error('no run begins with it');
      second.message.settings.run.key = begun.key;
      second.run.isBySdk = true;
      second.entry = { runKey: begun.key, kind: 'initial', entryKey: '0', bytes: 10, runVersion: 1 };
      await world().save([second]);
      await world().settle(begun, claimToken, delivered());
      await drop({ logs: T0 + DAY });
      const run = await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'r' });
      expect(run).toMatchObject({ key: begun.key, messageId: second.message.id });
      await world().store.runs.endRuns({
        endings: [{ ending: ending(begun, { runVersion: 2, atMs: T0 + 2_000 }), follows: [] }],
        nowMs: T0 + 2_000,
      });
      expect(await runLogOf(world())).toContain('RUN_SUCCESS');
    });

    it('drops runs that ended before the limit, with their journals and records, and no others', async () => {
      const [early, late] = [await startRun(world()), await startRun(world(), { id: 'late' })];
      const child = invoked(world(), early, { id: 'child' });
      await world().save([child]);
      await append(world(), early);
      for (const [first, atMs] of [
        [early, T0 + 10 * DAY],
        [late, T0 + 11 * DAY],
      ] as const) {
        await world().store.runs.endRuns({ endings: [{ ending: ending(first, { atMs }), follows: [] }], nowMs: atMs });
      }
      await drop({ logs: T0 + 11 * DAY });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: early.key })).toBeUndefined();
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: late.key })).toBeDefined();
      expect(await world().store.runs.findActiveRun({ projectId: PROJECT, id: 'child' })).toBeDefined();
      expect(await world().store.runs.readJournal({ projectId: early.projectId, runKey: early.key })).toEqual([]);
      expect(
        await world().store.runs.findRecords({ projectId: PROJECT, keys: [child.run?.invoker?.message.key ?? 0] }),
      ).toEqual([]);
      // The key can be reused only when nothing of the message is left.
      expect(await world().accept({ key: early.key })).toBeDefined();
    });

    it('drops long journals and many runs in chunks, and returns when nothing is left', async () => {
      const long = await startRun(world());
      const slots = Array.from({ length: 40 }, (_, step) => `s${step + 1}`);
      await world().save(slots.map((entryKey) => appended(world(), long, { entry: { entryKey } })));
      const others = await Promise.all(
        Array.from({ length: 30 }, (_, index) => startRun(world(), { id: `r${index}` })),
      );
      const endings = [long, ...others].map((first) => ({ ending: ending(first), follows: [] }));
      await world().store.runs.endRuns({ endings, nowMs: T0 });
      expect(await drop({ logs: T0 + DAY, rowsMax: 10 })).toBeGreaterThan(10);
      for (const { key } of [long, ...others]) {
        expect(await world().store.runs.findRun({ projectId: PROJECT, key })).toBeUndefined();
        expect(await world().store.runs.readJournal({ projectId: 1, runKey: key })).toEqual([]);
      }
    });

    it('keeps a failed run for as long as it can be resumed from the DLQ', async () => {
      const claimToken = world().number();
      const first = await startRun(world(), { state: { kind: 'claimed', claimToken, worker: 'w1' } });
      const failed = { ...lastFailure(T0), ending: ending(first, { state: 'RUN_FAILED' }) };
      await world().settle(first, claimToken, failed);
      const other = await startRun(world(), { id: 'other' });
      await world().store.runs.endRuns({ endings: [{ ending: ending(other), follows: [] }], nowMs: T0 });
      await drop({ logs: T0 + DAY, dead: T0 });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toMatchObject({
        state: 'RUN_FAILED',
      });
      expect(await journalOf(world(), first)).toHaveLength(1);
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: other.key })).toBeUndefined();
      await drop({ logs: T0 + DAY, dead: T0 + 1 });
      expect(await world().store.runs.findRun({ projectId: PROJECT, key: first.key })).toBeUndefined();
      expect(await world().accept({ key: first.key })).toBeDefined();
    });
  });
}
