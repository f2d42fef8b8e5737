/**
 * What becomes of commands whose project another worker has locked and does not let go of, because it was stopped or cut off?
 *
 * They wait here, a line for each project, and hold nothing that others need. Now and then the first of each line goes along
 * with a batch to see (a scout); when it gets through, so do the others.
 */
import type { ProjectId } from '../../engine/model.ts';

interface Line<T> {
  waiting: T[];
  scout: T | undefined;
  /** Scouts that came back blocked. */
  looks: number;
}

/** Pure: who calls says when a pause is over. */
export class Aside<T> {
  readonly #lines = new Map<ProjectId, Line<T>>();
  readonly #looksMax: number;

  /** A line is given up after `looksMax` looks in vain. */
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

  /** `entry` was blocked by `projectId`. One that needs several projects may go from line to line. */
  add(entry: T, projectId: ProjectId): void {
    this.#noteBack(entry, projectId);
    const line = this.#lines.get(projectId);
    if (line) line.waiting.push(entry);
    else this.#lines.set(projectId, { waiting: [entry], scout: undefined, looks: 0 });
  }

  /** `entry` was answered. If it was a scout, its line is no more; returns those who waited behind it. */
  noteThrough(entry: T): T[] {
    const [projectId, line] = this.#lineOfScout(entry) ?? [];
    if (projectId === undefined || line === undefined) return [];
    this.#lines.delete(projectId);
    return line.waiting;
  }

  /** A pause is over: the scouts that are to go, and those who have waited long enough. */
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

  /** Takes out all that wait, scouts excepted: those are under way. */
  takeAll(): T[] {
    const all = [...this.#lines.values()].flatMap(({ waiting }) => waiting);
    this.#lines.clear();
    return all;
  }

  /** A scout came back: blocked by the project of its line, or past that and by another one. */
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
