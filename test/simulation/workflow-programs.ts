/** Draws the workflows of the simulated world: small random programs, with their expected results. */
import type { SeededRandom } from '../support/seeded-random.ts';

/** A step, with everything that determines its outcome. */
export type Step = StepWork & { name: string };

type StepWork =
  /** Returns `value` after `throws` failed executions. With `isFinal`, these fail with an error that forbids retries. */
  | { kind: 'run'; value: number; throws: number; isFinal: boolean; padding: number }
  | { kind: 'sleep'; seconds: number; isUntil: boolean }
  /** Calls an endpoint that fails the first `failures` attempts: with an error, a non-retryable error, or silence. */
  | { kind: 'call'; ref: number; failures: number; retries: number; failsBy: CallFailure; padding: number }
  | { kind: 'wait'; eventId: string; timeoutS: number }
  /** Notifies all waiters of the event, or saves it for a wait of its own run. */
  | { kind: 'notify'; eventId: string; isToSelf: boolean }
  /** With `sharedId`, other runs may invoke the same run id at the same time. One of the invocations starts the run. */
  | { kind: 'invoke'; program: Program; sharedId?: string };

export type CallFailure = 'error' | 'refusal' | 'silence';

/** A single step, or a parallel group. */
export type Stage = StageOf<Step>;

type StageOf<Each> = Each | { kind: 'group'; branches: Each[] };

export interface Program {
  name: string;
  stages: Stage[];
  end: 'returns' | 'fails' | 'cancels itself';
}

export const EVENT_IDS = ['paid', 'shipped', 'called-back'];

type Draft = Omit<Program, 'name' | 'stages'> & { name?: string; stages: StageOf<StepWork>[] };

const STEP_WEIGHTS = { run: 36, sleep: 14, call: 16, wait: 16, notify: 14, invoke: 14 };
const INVOKE_DEPTH_MAX = 2;

export class ProgramLibrary {
  readonly #random: SeededRandom;
  readonly #programs = new Map<string, Program>();
  #refs = 0;
  /** The main event of the program that is being drawn. Most of its steps use it, so that they interact. */
  #eventId = '';

  constructor(random: SeededRandom) {
    this.#random = random.fork();
  }

  find(name: string): Program {
    const program = this.#programs.get(name);
    if (!program) throw new Error(`there is no program ${name}`);
    return program;
  }

  draw(depth = 0): Program {
    const random = this.#random;
    this.#eventId = random.choose(EVENT_IDS);
    const count = random.int(depth === 0 ? 1 : 0, depth === 0 ? 5 : 2);
    const stages = Array.from({ length: count }, (): StageOf<StepWork> => {
      if (!random.chance(0.25)) return this.#step(depth);
      return { kind: 'group', branches: Array.from({ length: random.int(2, 4) }, () => this.#step(depth)) };
    });
    const end = random.weighted({ returns: 88, fails: 7, 'cancels itself': 5 });
    return this.#add({ stages, end });
  }

  /** Draws a program that only waits. */
  drawWaiting(eventId: string, timeoutS: number): Program {
    return this.#add({ stages: [{ kind: 'wait', eventId, timeoutS }], end: 'returns' });
  }

  /** Draws a program that sleeps between steps. */
  drawPausing(): Program {
    const pauses = Array.from({ length: this.#random.int(1, 3) }, (): StageOf<StepWork>[] => {
      const seconds = this.#random.int(2, 20);
      return [this.#step(INVOKE_DEPTH_MAX), this.#step(INVOKE_DEPTH_MAX), { kind: 'sleep', seconds, isUntil: false }];
    });
    return this.#add({ stages: pauses.flat(), end: 'returns' });
  }

  /** Draws a program that only invokes a shared run. */
  drawSharing(): Program {
    return this.#add({ stages: [this.#sharedInvocation()], end: 'returns' });
  }

  #add({ name = `program-${this.#programs.size + 1}`, stages, end }: Draft): Program {
    let count = 0;
    const named = (work: StepWork): Step => ({ ...work, name: `step ${++count}` });
    const program: Program = {
      name,
      stages: stages.map((stage) =>
        stage.kind === 'group' ? { kind: 'group', branches: stage.branches.map(named) } : named(stage),
      ),
      end,
    };
    this.#programs.set(name, program);
    return program;
  }

  #step(depth: number): StepWork {
    const random = this.#random;
    const kind = random.weighted(STEP_WEIGHTS);
    switch (kind) {
      case 'sleep':
        return { kind, seconds: random.int(0, 30), isUntil: random.chance(0.3) };
      case 'call': {
        this.#refs += 1;
        const failsBy = random.choose(['error', 'error', 'refusal', 'silence'] as const);
        const failures = random.choose([0, 0, 1, 2]);
        return { kind, ref: this.#refs, failures, retries: random.int(0, 2), failsBy, padding: this.#padding() };
      }
      case 'wait':
        return { kind, eventId: this.#someEvent(), timeoutS: random.choose([1, 5, 20, 90]) };
      case 'notify':
        return { kind, eventId: this.#someEvent(), isToSelf: random.chance(0.6) };
      case 'invoke':
        if (depth < INVOKE_DEPTH_MAX) return this.#invocation(depth);
        break;
    }
    const throws = random.choose([0, 0, 0, 1, 2]);
    const isFinal = throws > 0 && random.chance(0.15);
    return { kind: 'run', value: random.int(0, 999), throws, isFinal, padding: this.#padding() };
  }

  #someEvent(): string {
    return this.#random.chance(0.75) ? this.#eventId : this.#random.choose(EVENT_IDS);
  }

  #invocation(depth: number): StepWork {
    const random = this.#random;
    return random.chance(0.2) ? this.#sharedInvocation() : { kind: 'invoke', program: this.draw(depth + 1) };
  }

  #sharedInvocation(): StepWork {
    const sharedId = `shared-${this.#random.int(1, 2)}`;
    const name = `program-of-${sharedId}`;
    const program = this.#programs.get(name) ?? this.#add({ name, stages: this.#longStages(), end: 'returns' });
    return { kind: 'invoke', program, sharedId };
  }

  /** Stages that take long enough for other runs to invoke the run while it is active. */
  #longStages(): StepWork[] {
    const sleep: StepWork = { kind: 'sleep', seconds: this.#random.int(5, 60), isUntil: false };
    return [sleep, this.#step(INVOKE_DEPTH_MAX), sleep];
  }

  /** The size of a padding: usually none; sometimes so large that the journal has to be fetched. */
  #padding(): number {
    return this.#random.chance(0.2) ? this.#random.int(100, 1_500) : 0;
  }
}

/** The steps of a program, each with the id of its result. The ids of the steps of a group are consecutive. */
export function stepsOf({ stages }: Program): { step: Step; stepId: number; concurrent: number }[] {
  return stages
    .flatMap((stage) =>
      (stage.kind === 'group' ? stage.branches : [stage]).map((step, _, { length }) => ({ step, length })),
    )
    .map(({ step, length }, index) => ({ step, stepId: index + 1, concurrent: length }));
}
