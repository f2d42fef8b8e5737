/**
 * Of which projects are there lines that only the store knows, and where are these read on? A project's lines are read from the
 * first to the last, and then anew if one was left out meanwhile: so each that was left out is read after that, unless it
 * is empty by then.
 */
import type { ProjectId } from '../model.ts';
import { lineOf, type OriginLine } from './origin-line.ts';

export interface Place {
  /** The last line that was read; at first the place before all of them. */
  after: OriginLine;
  /** A line was left out since the first of them was read: it may stand before `after`. */
  isAnew: boolean;
  /** They are being read, until memory has as many as it may. */
  isBeingRead: boolean;
}

export class LinesLeft {
  readonly #places = new Map<ProjectId, Place>();

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  get all(): Iterable<[ProjectId, Place]> {
    return this.#places;
  }

  find(projectId: ProjectId): Readonly<Place> | undefined {
    return this.#places.get(projectId);
  }

  /** A line of the project is only in the store from now on. */
  note(projectId: ProjectId): void {
    const place = this.#places.get(projectId);
    if (place) place.isAnew = true;
    else this.#places.set(projectId, { after: lineOf(projectId, ''), isAnew: false, isBeingRead: false });
  }

  /** The lines up to `last` were read; `undefined`: all to the end. `isFull`: memory has as many as it may. */
  noteRead(projectId: ProjectId, last: OriginLine | undefined, isFull: boolean): void {
    const place = this.#places.get(projectId);
    if (!place) return;
    const isWhole = last === undefined && !place.isAnew;
    if (isWhole) this.#places.delete(projectId);
    else if (last === undefined) Object.assign(place, { after: lineOf(projectId, ''), isAnew: false });
    else place.after = last;
    place.isBeingRead = !isFull;
  }
}
