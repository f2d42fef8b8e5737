/** Cuts the power at random moments of a recorded run, and reads what the database still contains. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Broken } from '../crash/checks.ts';
import { findingsOfDoctor } from '../crash/database-file.ts';
import { inWords } from '../crash/findings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type DiskOptions, ForgetfulDisk } from './disk.ts';
import type { Recording } from './record.ts';
import { readStoredMessages } from './stored-messages.ts';

/** Resolves with all that is wrong after any of `cuts` cuts, in words: nothing, if the promises are kept. */
export async function replayCuts(
  recording: Recording,
  cuts: number,
  seed: number,
  options: DiskOptions = {},
): Promise<string[]> {
  const random = new SeededRandom(seed);
  const moments = Array.from({ length: cuts }, () => random.int(1, recording.records.length)).sort((a, b) => a - b);
  const disk = new ForgetfulDisk(options);
  const acknowledged: string[] = [];
  const findings: string[] = [];
  let played = 0;
  for (const moment of moments) {
    for (const record of recording.records.slice(played, moment)) {
      disk.play(record);
      if (record.op === 'acknowledged') acknowledged.push(record.id);
    }
    played = moment;
    const broken = await checkAfterCut(disk.cut(random), recording, acknowledged);
    for (const finding of inWords(broken)) findings.push(`cut after record ${moment}: ${finding}`);
  }
  return findings;
}

async function checkAfterCut(
  files: ReadonlyMap<string, Buffer>,
  { databaseFile, encryptionKey }: Recording,
  acknowledged: readonly string[],
): Promise<Broken> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-cut-'));
  try {
    for (const [name, content] of files) writeFileSync(join(folder, name), content);
    writeFileSync(join(folder, 'encryption.key'), encryptionKey);
    const stored = readStoredMessages(join(folder, databaseFile));
    if (stored.integrity.join() !== 'ok') return { 'P1 damaged file': stored.integrity };
    return {
      'P1 lost': acknowledged.filter((id) => !stored.accountedFor.has(id)),
      'P3 torn': stored.torn,
      doctor: stored.isMigrated ? await findingsOfDoctor(folder) : [],
    };
  } catch (error) {
    // SQLite refuses a file that is not one: "file is not a database", "database disk image is malformed".
    return { 'P1 damaged file': [String(error)] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
