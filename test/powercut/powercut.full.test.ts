import { beforeAll, describe, expect, it } from 'vitest';
import { shimObstacle } from '../../bench/preload/build.ts';
import { type Recording, recordRun } from './record.ts';
import { replayCuts } from './replay.ts';

const SEED = 11;
const obstacle = shimObstacle();

// The long version is `npm run powercut`.
describe.skipIf(obstacle !== undefined)(`a power cut${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  let recording: Recording;
  beforeAll(async () => {
    recording = await recordRun(300, SEED);
  }, 60_000);

  it('P1, P3: takes no acknowledged message along and damages no file, at 100 random moments', {
    timeout: 60_000,
  }, async () => {
    expect(recording.acknowledged).toBeGreaterThanOrEqual(300);
    const endedRuns = recording.records.filter((one) => one.op === 'acknowledged' && one.id.startsWith('wfr_'));
    expect(endedRuns.length).toBeGreaterThan(5);
    expect(await replayCuts(recording, 100, SEED)).toEqual([]);
  });

  it('would show: with the syncs of the write-ahead log ignored, messages are lost', { timeout: 60_000 }, async () => {
    const findings = await replayCuts(recording, 20, SEED, { ignoreSync: (file) => file.endsWith('-wal') });
    expect(findings.filter((finding) => finding.includes('P1 lost')).length).toBeGreaterThan(0);
  });
});
