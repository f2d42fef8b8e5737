/**
 * What happens to commands whose project another worker has locked and keeps locked, because it was stopped or cut off?
 *
 * They wait here, in one line for each project, and hold nothing that others need. From time to time the first command
 * of each line is put into a batch as a test (a scout). When the scout gets through, the rest of its line follows.
 */
import type { ProjectId } from '../../engine/model.ts';

interface Line<T> {
  waiting: T[];
  scout: T | undefined;
  /** How often a scout came back blocked. */
  looks: number;
}

/** Pure: the caller says when a pause is over. */
export class BlockedCommands<T> {
  readonly #lines = new Map<ProjectId, Line<T>>();
  readonly #looksMax: number;

  /** A line is given up after `looksMax` scouts came back blocked. */
  constructor(looksMax: number) {
    this.#looksMax = looksMax;
  }

  /** Projects that have a line. */
  get length(): number {
    return this.#lines.size;
  }

  /** Commands that wait, scouts excepted. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** Whether this project is suspected to be locked for long. */
  has(projectId: ProjectId): boolean {
    return this.#lines.has(projectId);
  }

  /** `entry` was blocked by `projectId`. A command that needs several projects may move from line to line. */
  add(entry: T, projectId: ProjectId): void {
    this.#noteBack(entry, projectId);
    const line = this.#lines.get(projectId);
    if (line) line.waiting.push(entry);
    else this.#lines.set(projectId, { waiting: [entry], scout: undefined, looks: 0 });
  }

  /** `entry` was answered. If it was a scout, this removes its line and returns the commands that waited behind it. */
  noteThrough(entry: T): T[] {
    const [projectId, line] = this.#lineOfScout(entry) ?? [];
    if (projectId === undefined || line === undefined) return [];
    this.#lines.delete(projectId);
    return line.waiting;
  }

  /** A pause is over: returns the scouts to send, and the commands that have waited too long. */
  look(): { scouts: T[]; givenUp: T[] } {
    const scouts: T[] = [];
    const givenUp: T[] = [];
    for (const [projectId, line] of this.#lines) {
      if (line.scout !== undefined) continue; // it is under way
      if (line.looks >= this.#looksMax) {
        this.#lines.delete(projectId);
        givenUp.push(...line.waiting);
      } else {
        line.scout = line.waiting.shift();
        if (line.scout === undefined) this.#lines.delete(projectId);
        else scouts.push(line.scout);
      }
    }
    return { scouts, givenUp };
  }

  /** Takes out all that wait. Scouts stay, because they are under way. */
  takeAll(): T[] {
    const all = [...this.#lines.values()].flatMap(({ waiting }) => waiting);
    this.#lines.clear();
    return all;
  }

  /** A scout came back: its own project blocks it still, or only another project does now. */
  #noteBack(entry: T, projectId: ProjectId): void {
    const [scoutedId, line] = this.#lineOfScout(entry) ?? [];
    if (!line) return;
    line.scout = undefined;
    if (scoutedId === projectId) line.looks += 1;
    else line.looks = 0;
  }

  #lineOfScout(entry: T): [ProjectId, Line<T>] | undefined {
    for (const each of this.#lines) if (each[1].scout === entry) return each;
    return undefined;
  }
}
