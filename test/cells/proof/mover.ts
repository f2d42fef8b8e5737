/** Runs `waypost projects move` like an operator, or on a machine that fails at a random moment. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProcessResult, WaypostProcess } from '../../support/waypost-process.ts';

/** The steps that the command reports. */
export const STEPS = ['copying', 'pausing', 'copying the rest', 'switching', 'deleting', 'moved'] as const;
export type Step = (typeof STEPS)[number];

/** Errors for an unavailable database, and for workers that cannot confirm: a later try continues the move. */
const TRIES_MAX = 60;
const BETWEEN_TRIES_MS = 250;

export class Mover {
  readonly #env: Readonly<Record<string, string>>;
  readonly #running = new Set<WaypostProcess>();
  /** Killed moves, by their last reported step; `''`: before the first. */
  readonly killedAt = new Map<string, number>();

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  /** Starts the command, and resolves when it reports this step or has exited. */
  async begin(project: string, to: string, step: Step): Promise<Move> {
    const move = this.#start('projects', 'move', project, '--to', to);
    await move.untilStep(step);
    return move;
  }

  /** Repeats the command until the project is in the target cell. */
  async untilMoved(project: string, to: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const { code, stderr } = await this.#start('projects', 'move', project, '--to', to).ended();
      if (code === 0 || stderr.includes('already')) return;
      if (tries === TRIES_MAX) throw new Error(`${project} cannot be moved to ${to}: ${stderr}`);
      await sleep(BETWEEN_TRIES_MS);
    }
  }

  /** Kills the command `afterMs` after it has reported a step. */
  async killAt(project: string, to: string, step: Step, afterMs: number): Promise<void> {
    const move = await this.begin(project, to, step);
    await sleep(afterMs);
    await move.kill();
    const last = move.lastStep ?? '';
    this.killedAt.set(last, (this.killedAt.get(last) ?? 0) + 1);
  }

  /** Resolves to whether the project stays. A cancel is too late when the project is already in the new cell, and needless without a move. */
  async cancel(project: string): Promise<'stays' | 'too late' | 'not moving'> {
    const { code, stderr } = await this.#start('projects', 'move', project, '--cancel').ended();
    if (code === 0) return 'stays';
    if (stderr.includes('move it back')) return 'too late';
    if (stderr.includes('is not being moved')) return 'not moving';
    throw new Error(`the move of ${project} cannot be cancelled: ${stderr}`);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((process) => process.kill()));
  }

  #start(...args: string[]): Move {
    const process = new WaypostProcess(args, { ...this.#env });
    this.#running.add(process);
    void process.waitForExit().then(() => this.#running.delete(process));
    return new Move(process);
  }
}

export class Move {
  readonly #process: WaypostProcess;

  constructor(process: WaypostProcess) {
    this.#process = process;
  }

  get lastStep(): Step | undefined {
    return lastStepIn(this.#process.stderr);
  }

  /** Resolves when the command reports this step or has exited. */
  untilStep(step: Step): Promise<void> {
    return this.#process.waitForStderr((stderr) => {
      const last = lastStepIn(stderr);
      return last !== undefined && STEPS.indexOf(last) >= STEPS.indexOf(step);
    });
  }

  ended(): Promise<ProcessResult> {
    return this.#process.waitForExit();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }
}

function lastStepIn(stderr: string): Step | undefined {
  const lines = stderr.split('\n');
  return STEPS.findLast((step) => lines.includes(step));
}
