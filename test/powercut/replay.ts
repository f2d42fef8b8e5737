/** Cuts the power at random moments of a recorded run and looks at what the database still knows. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findingsOfDoctor } from '../crash/database-file.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type DiskOptions, ForgetfulDisk } from './disk.ts';
import type { Recording } from './record.ts';
import { readStoredMessages } from './stored-messages.ts';

export interface CutReport {
  cuts: number;
  /** Cuts after which at least one acknowledged message was gone. */
  cutsWithLoss: number;
  /** Acknowledged messages gone, over all cuts. */
  lostMessages: number;
  /** Cuts after which the file could not be opened, or `integrity_check` complained. */
  cutsWithCorruption: number;
  /** Cuts after which a message's row, logs and DLQ entry contradicted each other. */
  cutsWithTornMessages: number;
  /** Cuts after which `waypost doctor` found something wrong. */
  cutsWithFindings: number;
  /** What went wrong first, in words. */
  firstFinding: string | undefined;
}

export async function replayCuts(
  recording: Recording,
  cuts: number,
  seed: number,
  options: DiskOptions = {},
): Promise<CutReport> {
  const random = new SeededRandom(seed);
  const moments = Array.from({ length: cuts }, () => random.int(1, recording.records.length)).sort((a, b) => a - b);
  const disk = new ForgetfulDisk(options);
  const acknowledged: string[] = [];
  const report: CutReport = {
    cuts,
    cutsWithLoss: 0,
    lostMessages: 0,
    cutsWithCorruption: 0,
    cutsWithTornMessages: 0,
    cutsWithFindings: 0,
    firstFinding: undefined,
  };
  let played = 0;
  for (const moment of moments) {
    for (const record of recording.records.slice(played, moment)) {
      disk.play(record);
      if (record.op === 'acknowledged') acknowledged.push(record.id);
    }
    played = moment;
    const finding = await lookAfterCut(disk, recording, acknowledged, random, report);
    if (finding !== undefined) report.firstFinding ??= `cut after record ${moment}: ${finding}`;
  }
  return report;
}

async function lookAfterCut(
  disk: ForgetfulDisk,
  { databaseFile, encryptionKey }: Recording,
  acknowledged: string[],
  random: SeededRandom,
  report: CutReport,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-cut-'));
  try {
    for (const [name, content] of disk.cut(random)) writeFileSync(join(folder, name), content);
    writeFileSync(join(folder, 'encryption.key'), encryptionKey);
    const stored = readStoredMessages(join(folder, databaseFile));
    if (stored.integrity.join() !== 'ok') {
      report.cutsWithCorruption += 1;
      return stored.integrity.join('; ');
    }
    if (stored.torn.length > 0) report.cutsWithTornMessages += 1;
    const lost = acknowledged.filter((id) => !stored.accountedFor.has(id));
    if (lost.length > 0) report.cutsWithLoss += 1;
    report.lostMessages += lost.length;
    const findings = stored.isMigrated ? await findingsOfDoctor(folder) : [];
    if (findings.length > 0) report.cutsWithFindings += 1;
    if (lost.length > 0) return `${lost.length} of ${acknowledged.length} acknowledged messages lost, first ${lost[0]}`;
    return stored.torn.length > 0 ? `contradiction: ${stored.torn[0]}` : findings[0];
  } catch (error) {
    // SQLite refuses a file that is not one: "file is not a database", "database disk image is malformed".
    report.cutsWithCorruption += 1;
    return String(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
