/** Deploys the code of each program: as drawn, changed in one place, and changed back. */
import type { SeededRandom } from '../support/seeded-random.ts';
import type { RecordedStep } from './workflow-library.ts';
import { type Program, type ProgramLibrary, type Stage, type Step, stepsOf } from './workflow-programs.ts';

export class Deployments {
  readonly #random: SeededRandom;
  readonly #programs: ProgramLibrary;
  readonly #changedByName = new Map<string, Program>();
  readonly #deployed = new Map<string, Program>();
  #isForAll = false;

  constructor(programs: ProgramLibrary, random: SeededRandom) {
    this.#programs = programs;
    this.#random = random.fork();
  }

  /** Deploys the changed program, or the original one if the changed one is deployed. */
  deploy(name: string): void {
    const drawn = this.#programs.find(name);
    const isChanged = this.#deployed.get(name) !== undefined && this.#deployed.get(name) !== drawn;
    const changed = this.#changedByName.get(name) ?? this.#changedFrom(drawn);
    this.#changedByName.set(name, changed);
    this.#deployed.set(name, isChanged ? drawn : changed);
  }

  /** From now on each run is served by code that fits its journal. */
  deployForAll(): void {
    this.#isForAll = true;
  }

  /** The code that serves a run with these steps. */
  codeFor(name: string, steps: readonly RecordedStep[]): Program {
    const fitting = this.#isForAll ? this.fitting(name, steps)[0] : undefined;
    return fitting ?? this.#deployed.get(name) ?? this.#programs.find(name);
  }

  /** The versions of the code that can have recorded these steps. */
  fitting(name: string, steps: readonly RecordedStep[]): Program[] {
    return this.versionsOf(name).filter((program) => fits(program, steps));
  }

  versionsOf(name: string): Program[] {
    const changed = this.#changedByName.get(name);
    return [this.#programs.find(name), ...(changed ? [changed] : [])];
  }

  #changedFrom(program: Program): Program {
    const random = this.#random;
    const { stages } = program;
    const pair = stages.findIndex((stage, index) => stage.kind === 'run' && stages[index + 1]?.kind === 'run');
    const [first, second] = [stages[pair], stages[pair + 1]] as [Step, Step];
    const one = random.int(0, Math.max(0, stages.length - 1));
    const changes: Stage[][] = [
      stages.map((stage, index) => (index === one ? renamed(stage) : stage)),
      stages.slice(0, -1), //
    ];
    if (pair >= 0) changes.push([...stages.slice(0, pair), second, first, ...stages.slice(pair + 2)]);
    return { ...program, stages: random.choose(changes) };
  }
}

/** Renames the step, and changes the result of a `run` step. */
function renamed(stage: Stage): Stage {
  if (stage.kind === 'group') {
    const [first, ...others] = stage.branches;
    return first ? { ...stage, branches: [renamed(first) as Step, ...others] } : stage;
  }
  const name = `other ${stage.name}`;
  return stage.kind === 'run' ? { ...stage, name, value: stage.value + 1_000 } : { ...stage, name };
}

/** Whether the code has each of the steps at its position. */
export function fits(program: Program, steps: readonly RecordedStep[]): boolean {
  const code = stepsOf(program);
  return steps.every(({ stepId, targetStep = 0, stepName, concurrent }) => {
    const known = code[(stepId || targetStep) - 1];
    return known?.step.name === stepName && known.concurrent === concurrent;
  });
}
