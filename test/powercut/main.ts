/**
 * `npm run powercut`: records the writes and syncs of the real server once, then cuts the power at random moments of the
 * recording. No acknowledged message may be lost, and no file may be damaged. Then it repeats this with a disk that ignores
 * syncs of the write-ahead log, where losses must occur: otherwise the test would prove nothing.
 */
import { parseArgs } from 'node:util';
import { shimObstacle } from '../../bench/preload/build.ts';
import { recordRun } from './record.ts';
import { replayCuts } from './replay.ts';

const { values } = parseArgs({
  options: {
    cuts: { type: 'string', default: '1000' },
    messages: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(process.pid) },
  },
});

const obstacle = shimObstacle();
if (obstacle !== undefined) {
  process.stderr.write(`the power cut test cannot run here: ${obstacle}\n`);
  process.exit(2);
}

const seed = Number(values.seed);
const recording = await recordRun(Number(values.messages), seed);
process.stdout.write(
  `seed ${seed}: ${recording.acknowledged} messages acknowledged, ${recording.records.length} operations recorded\n`,
);
const kept = await replayCuts(recording, Number(values.cuts), seed);
print('syncs kept', kept);
const ignored = await replayCuts(recording, Math.ceil(Number(values.cuts) / 10), seed, {
  ignoreSync: (file) => file.endsWith('-wal'),
});
print('syncs of the write-ahead log ignored (must lose)', ignored);

if (kept.length > 0 || !ignored.some((finding) => finding.includes('P1 lost'))) process.exitCode = 1;

function print(title: string, findings: readonly string[]): void {
  const first = findings.length > 0 ? `\n  first: ${findings[0]}` : '';
  process.stdout.write(`${title}: ${findings.length} findings${first}\n`);
}
