/** The log that `recorder.c` writes. It also has the acknowledgements to the client, each after the operations before it. */
import { appendFileSync, openSync, readFileSync, writeSync } from 'node:fs';

export type DiskRecord =
  | { op: 'write'; file: string; offset: number; data: Buffer }
  | { op: 'truncate'; file: string; size: number }
  | { op: 'sync'; file: string }
  | { op: 'remove'; file: string }
  /** The client has received the response: everything recorded before this is older than the 2xx. */
  | { op: 'acknowledged'; id: string };

const HEAD_BYTES = 14;
const ACKNOWLEDGED = 'A';

/** Appends acknowledgements to a log that a recorder is writing at the same time. */
export function openAcknowledgements(logPath: string): (id: string) => void {
  appendFileSync(logPath, ''); // the recorder opens an existing file only
  const file = openSync(logPath, 'a');
  return (id) => {
    const data = Buffer.from(id);
    const head = Buffer.alloc(HEAD_BYTES);
    head.write(ACKNOWLEDGED, 0);
    head.writeUInt32LE(data.length, 10);
    // One write to an O_APPEND file: it falls between two records, never into one.
    writeSync(file, Buffer.concat([head, data]));
  };
}

export function readRecordLog(logPath: string): DiskRecord[] {
  const log = readFileSync(logPath);
  const records: DiskRecord[] = [];
  let at = 0;
  while (at < log.length) {
    const nameEnd = at + 2 + log.readUInt8(at + 1);
    const dataStart = nameEnd + 12;
    const dataEnd = dataStart + log.readUInt32LE(nameEnd + 8);
    records.push(
      decode(
        String.fromCharCode(log.readUInt8(at)),
        log.toString('utf8', at + 2, nameEnd),
        Number(log.readBigUInt64LE(nameEnd)),
        log.subarray(dataStart, dataEnd),
      ),
    );
    at = dataEnd;
  }
  return records;
}

function decode(op: string, file: string, offset: number, data: Buffer): DiskRecord {
  switch (op) {
    case 'W':
      return { op: 'write', file, offset, data };
    case 'T':
      return { op: 'truncate', file, size: offset };
    case 'S':
      return { op: 'sync', file };
    case 'U':
      return { op: 'remove', file };
    case ACKNOWLEDGED:
      return { op: 'acknowledged', id: data.toString() };
    default:
      throw new Error(`unknown operation ${op} in the record log`);
  }
}
