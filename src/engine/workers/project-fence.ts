/**
 * Decides whether this worker may still own messages of a project that can move between stores. The claims of its
 * attempts move with the project, and the new store counts the worker as alive for one heartbeat timeout
 * (src/cells/move/announce-workers.ts). If the worker sends no heartbeat to the new store in that time, other workers
 * release these claims, although the worker's fence in the former store is open. So each heartbeat asks for the projects
 * with attempts in flight. If no heartbeat has found a project for as long as a fence stays open, the attempts of the
 * project are interrupted.
 */
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog } from '../ports.ts';

/** The attempts of one engine (one store) of this worker. */
export interface ProjectAttempts {
  countOf(projectId: ProjectId): number;
  /** Interrupts the attempts of the project. */
  interrupt(projectId: ProjectId): void;
  /** Sends a heartbeat now. */
  sendHeartbeatSoon(): void;
}

interface KnownProject {
  /** When the latest request that found the project in a store of this worker began, in elapsed time. */
  requestedAtMs: Millis;
  /** The store that had the project, identified by its fence; undefined if the project has left that store since. */
  store: object | undefined;
}

/** The projects for which a heartbeat asked, and the projects among them that are in the store. */
export interface HeartbeatProjects {
  requested: readonly ProjectId[];
  /** The projects of `requested` that are in the store. */
  here: readonly ProjectId[];
  startedAtMs: Millis;
  /** As in `HeartbeatResponse`. */
  wasKnown: boolean;
}

/** The fence of the projects of a worker. All engines of the worker share this fence. */
export class ProjectFence {
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #limitMs: Millis;
  readonly #nameOf: (projectId: ProjectId) => string;
  readonly #engines = new Set<ProjectAttempts>();
  readonly #projects = new Map<ProjectId, KnownProject>();
  readonly #alarm: Alarm;
  /** The `requestedAtMs` from which the alarm was computed. */
  #alarmFor: Millis = 0;

  /** `limitMs`: the same limit as for the fences of stores. `nameOf`: returns the name of a project, for the log. */
  constructor(clock: Clock, log: EventLog, limitMs: Millis, nameOf: (projectId: ProjectId) => string) {
    this.#clock = clock;
    this.#log = log;
    this.#limitMs = limitMs;
    this.#nameOf = nameOf;
    this.#alarm = new Alarm(clock, () => this.#checkAttempts());
  }

  /** Adds an engine, whose attempts can be interrupted from now on. The returned function removes it. */
  join(engine: ProjectAttempts): () => void {
    this.#engines.add(engine);
    return () => {
      this.#engines.delete(engine);
      if (this.#engines.size === 0) this.#alarm.cancel();
    };
  }

  /** Whether the attempt of a claim may start. The claim shows that the project was in the store after `requestedAtMs`. */
  mayStart(projectId: ProjectId, requestedAtMs: Millis, store: object): boolean {
    if (this.#isExpired(requestedAtMs)) return false;
    this.#note(projectId, requestedAtMs, store);
    return true;
  }

  /**
   * The projects for which a heartbeat in the store asks: projects that were last found in this store, and projects that
   * have left any store.
   */
  projectsToRequest(store: object): ProjectId[] {
    return [...this.#projects].flatMap(([projectId, { store: latest }]) =>
      latest === undefined || latest === store ? [projectId] : [],
    );
  }

  /** Notes the result of a heartbeat in the store. */
  noteHeartbeat({ requested, here, startedAtMs, wasKnown }: HeartbeatProjects, store: object): void {
    const projectsHere = new Set(here);
    const leftProjects: ProjectId[] = [];
    for (const projectId of requested) {
      const known = this.#projects.get(projectId);
      if (!known) continue;
      if (projectsHere.has(projectId)) {
        // Other workers may have released the claims that moved with the project.
        if (!wasKnown) this.#interrupt(projectId);
        this.#note(projectId, startedAtMs, store);
      } else if (known.store === store) leftProjects.push(projectId);
    }
    this.noteLeft(leftProjects);
  }

  /**
   * Notes that projects have left their store: all engines send a heartbeat now, to find the projects in another store
   * before the attempts of the projects are interrupted.
   */
  noteLeft(projects: Iterable<ProjectId>): void {
    let hasLeft = false;
    for (const projectId of projects) {
      const known = this.#projects.get(projectId);
      if (!known) continue;
      known.store = undefined;
      hasLeft = true;
    }
    if (hasLeft) for (const engine of this.#engines) engine.sendHeartbeatSoon();
  }

  #note(projectId: ProjectId, requestedAtMs: Millis, store: object): void {
    const known = this.#projects.get(projectId);
    if (known && known.requestedAtMs >= requestedAtMs) return;
    this.#projects.set(projectId, { requestedAtMs, store });
    this.#setAlarmFor(requestedAtMs);
  }

  /** Sets the alarm for the time at which `requestedAtMs` is too long ago, unless the alarm already rings earlier. */
  #setAlarmFor(requestedAtMs: Millis): void {
    if (this.#alarm.isSet && this.#alarmFor <= requestedAtMs) return;
    this.#alarmFor = requestedAtMs;
    this.#alarm.setIn(this.#leftMs(requestedAtMs) + 1);
  }

  #checkAttempts(): void {
    for (const [projectId, { requestedAtMs }] of [...this.#projects]) {
      const hasAttempts = this.#countOf(projectId) > 0;
      const isExpired = this.#isExpired(requestedAtMs);
      if (hasAttempts && isExpired) this.#interrupt(projectId);
      if (!hasAttempts || isExpired) this.#projects.delete(projectId);
      else this.#setAlarmFor(requestedAtMs);
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

  #isExpired(requestedAtMs: Millis): boolean {
    return this.#leftMs(requestedAtMs) < 0;
  }

  #leftMs(requestedAtMs: Millis): Millis {
    return requestedAtMs + this.#limitMs - this.#clock.elapsedMs;
  }
}
