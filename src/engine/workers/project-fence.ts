/**
 * May this worker still own messages of a project that can move from store to store? The claims of its attempts move along,
 * and in the new store it counts as live for the time of a heartbeat (src/cells/move/workers.ts). If it sends none there
 * meanwhile, others give its claims back, while its fence in the former store is open. So each heartbeat asks for the
 * projects with attempts under way. Where none has found a project for as long as a fence stays open, the attempts end.
 */
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog } from '../ports.ts';

/** The attempts of one engine of this worker. */
export interface ProjectAttempts {
  countOf(projectId: ProjectId): number;
  /** Ends those of the project. */
  interrupt(projectId: ProjectId): void;
  /** Sends a heartbeat now. */
  askSoon(): void;
}

interface Known {
  /** When the latest question began that found the project in a store where this worker lives, as `elapsedMs` counts. */
  askedAtMs: Millis;
  /** Which store that was, by its fence; undefined: the project has left it since. */
  store: object | undefined;
}

/** What a heartbeat has heard of projects. */
export interface HeardOfProjects {
  asked: readonly ProjectId[];
  /** Those of them that are in the store. */
  here: readonly ProjectId[];
  begunAtMs: Millis;
  /** As in `HeartbeatAnswer`. */
  wasKnown: boolean;
}

/** One for all engines of a worker. */
export class ProjectFence {
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #limitMs: Millis;
  readonly #nameOf: (projectId: ProjectId) => string;
  readonly #engines = new Set<ProjectAttempts>();
  readonly #known = new Map<ProjectId, Known>();
  readonly #alarm: Alarm;
  /** The time of the question for which it is set. */
  #alarmFor: Millis = 0;

  /** `limitMs`: as for the fences of the stores. `nameOf`: the name of a project in the log. */
  constructor(clock: Clock, log: EventLog, limitMs: Millis, nameOf: (projectId: ProjectId) => string) {
    this.#clock = clock;
    this.#log = log;
    this.#limitMs = limitMs;
    this.#nameOf = nameOf;
    this.#alarm = new Alarm(clock, () => this.#look());
  }

  /** From now on ends the attempts of an engine too, until the answer is called. */
  join(engine: ProjectAttempts): () => void {
    this.#engines.add(engine);
    return () => {
      this.#engines.delete(engine);
      if (this.#engines.size === 0) this.#alarm.cancel();
    };
  }

  /** Of a claim in the store itself: the project was there after `askedAtMs`. */
  mayBegin(projectId: ProjectId, askedAtMs: Millis, store: object): boolean {
    if (this.#isOver(askedAtMs)) return false;
    this.#note(projectId, askedAtMs, store);
    return true;
  }

  /** The projects for which a heartbeat in the store asks: those that were there, or that have left another one. */
  toAskFor(store: object): ProjectId[] {
    return [...this.#known].flatMap(([projectId, { store: latest }]) =>
      latest === undefined || latest === store ? [projectId] : [],
    );
  }

  /** Of a heartbeat in the store. */
  hear({ asked, here, begunAtMs, wasKnown }: HeardOfProjects, store: object): void {
    const found = new Set(here);
    const left: ProjectId[] = [];
    for (const projectId of asked) {
      const known = this.#known.get(projectId);
      if (!known) continue;
      if (found.has(projectId)) {
        // Others may have given back what moved along.
        if (!wasKnown) this.#interrupt(projectId);
        this.#note(projectId, begunAtMs, store);
      } else if (known.store === store) left.push(projectId);
    }
    this.noteLeft(left);
  }

  /** They are not where they were: all stores are asked at once, since attempts end where a slow heartbeat would come too late. */
  noteLeft(projects: Iterable<ProjectId>): void {
    let hasLeft = false;
    for (const projectId of projects) {
      const known = this.#known.get(projectId);
      if (!known) continue;
      known.store = undefined;
      hasLeft = true;
    }
    if (hasLeft) for (const engine of this.#engines) engine.askSoon();
  }

  #note(projectId: ProjectId, askedAtMs: Millis, store: object): void {
    const known = this.#known.get(projectId);
    if (known && known.askedAtMs >= askedAtMs) return;
    this.#known.set(projectId, { askedAtMs, store });
    this.#lookBy(askedAtMs);
  }

  /** Looks once `askedAtMs` is too long ago, or before. */
  #lookBy(askedAtMs: Millis): void {
    if (this.#alarm.isSet && this.#alarmFor <= askedAtMs) return;
    this.#alarmFor = askedAtMs;
    this.#alarm.setIn(this.#leftMs(askedAtMs) + 1);
  }

  #look(): void {
    for (const [projectId, { askedAtMs }] of [...this.#known]) {
      const isUnderWay = this.#countOf(projectId) > 0;
      const isOver = this.#isOver(askedAtMs);
      if (isUnderWay && isOver) this.#interrupt(projectId);
      if (!isUnderWay || isOver) this.#known.delete(projectId);
      else this.#lookBy(askedAtMs);
    }
  }

  #countOf(projectId: ProjectId): number {
    return [...this.#engines].reduce((sum, engine) => sum + engine.countOf(projectId), 0);
  }

  #interrupt(projectId: ProjectId): void {
    const count = this.#countOf(projectId);
    if (count > 0) this.#log.warn('project_cut_off', { project: this.#nameOf(projectId), count });
    for (const engine of this.#engines) engine.interrupt(projectId);
  }

  #isOver(askedAtMs: Millis): boolean {
    return this.#leftMs(askedAtMs) < 0;
  }

  #leftMs(askedAtMs: Millis): Millis {
    return askedAtMs + this.#limitMs - this.#clock.elapsedMs;
  }
}
