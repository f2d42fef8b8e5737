/**
 * A disk that loses unsynced data: synced data is kept, and parts of the other data survive a power failure. Each file is
 * synced separately, and directory entries count as written at once: the model proves bugs, not their absence.
 */
import type { SeededRandom } from '../support/seeded-random.ts';
import type { DiskRecord } from './record-log.ts';

/** What a power cut draws from. */
export type Chance = Pick<SeededRandom, 'int' | 'chance' | 'choose'>;

type Change = Extract<DiskRecord, { op: 'write' | 'truncate' }>;

/** The smallest piece that a disk writes whole. */
const SECTOR_BYTES = 512;

class FileImage {
  #bytes: Buffer;
  #size: number;

  constructor(content: Buffer = Buffer.alloc(0)) {
    this.#bytes = content;
    this.#size = content.length;
  }

  apply(change: Change): void {
    if (change.op === 'truncate') this.#resize(change.size);
    else this.write(change.offset, change.data);
  }

  write(offset: number, data: Buffer): void {
    if (offset + data.length > this.#size) this.#resize(offset + data.length);
    data.copy(this.#bytes, offset);
  }

  content(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  #resize(size: number): void {
    if (size > this.#bytes.length) {
      const grown = Buffer.alloc(Math.max(size, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, this.#size);
      this.#bytes = grown;
    } else if (size < this.#size) this.#bytes.fill(0, size, this.#size); // grown again, it reads as zeros
    this.#size = size;
  }
}

export interface DiskOptions {
  /** Plays a disk, or a database setting, that does not keep this file's syncs. */
  ignoreSync?: (file: string) => boolean;
}

export class ForgetfulDisk {
  readonly #ignoreSync: (file: string) => boolean;
  readonly #files = new Map<string, { durable: FileImage; unsynced: Change[] }>();

  constructor(options: DiskOptions = {}) {
    this.#ignoreSync = options.ignoreSync ?? (() => false);
  }

  play(record: DiskRecord): void {
    switch (record.op) {
      case 'acknowledged':
        return;
      case 'remove':
        this.#files.delete(record.file);
        return;
      case 'sync': {
        const file = this.#files.get(record.file);
        if (file === undefined || this.#ignoreSync(record.file)) return;
        for (const change of file.unsynced) file.durable.apply(change);
        file.unsynced = [];
        return;
      }
      default: {
        let file = this.#files.get(record.file);
        if (file === undefined) {
          file = { durable: new FileImage(), unsynced: [] };
          this.#files.set(record.file, file);
        }
        file.unsynced.push(record);
      }
    }
  }

  /** What a power cut now leaves of each file. The disk itself is not changed. */
  cut(random: Chance): Map<string, Buffer> {
    const left = new Map<string, Buffer>();
    for (const [name, { durable, unsynced }] of this.#files) {
      const image = new FileImage(Buffer.from(durable.content()));
      surviveInPart(image, unsynced, random);
      if (image.content().length > 0) left.set(name, image.content());
    }
    return left;
  }
}

/** Of what was not synced: nothing, everything, everything up to a point, some writes, or some sectors of each. */
function surviveInPart(image: FileImage, unsynced: Change[], random: Chance): void {
  const mode = random.choose(['nothing', 'everything', 'prefix', 'some', 'torn'] as const);
  if (mode === 'nothing') return;
  const prefix = mode === 'prefix' ? random.int(0, unsynced.length) : unsynced.length;
  for (const change of unsynced.slice(0, prefix)) {
    if (mode === 'some' && random.chance(0.5)) continue;
    if (mode === 'torn' && change.op === 'write') tear(image, change.offset, change.data, random);
    else image.apply(change);
  }
}

function tear(image: FileImage, offset: number, data: Buffer, random: Chance): void {
  for (let at = 0; at < data.length; at += SECTOR_BYTES - ((offset + at) % SECTOR_BYTES)) {
    const end = at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES);
    if (random.chance(0.5)) image.write(offset + at, data.subarray(at, end));
  }
}
