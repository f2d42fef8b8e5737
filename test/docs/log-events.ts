/** Finds in the sources all events that the server can log. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Node, parseSync, Visitor } from 'oxc-parser';

const ROOT = join(import.meta.dirname, '../..');
const LEVELS = new Set(['debug', 'info', 'warn', 'error']);
const EVENT = /^[a-z]+(_[a-z]+)*$/;

/**
 * Where an event is logged whose name comes from elsewhere, and which names those are. A new place of that kind must be
 * written down here, or the page that explains all events could miss some.
 */
const NAMED_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'src/cli/run/run-server.ts': ['store_failed', 'worker_ended', 'defect'],
  'src/engine/loops/due-loop.ts': ['cancel_failed', 'recovery_failed', 'schedules_failed', 'waiters_failed'],
  'src/engine/workers/rescue.ts': ['rescued', 'given_back'],
  'src/engine/reports.ts': ['run_succeeded', 'run_canceled'],
};

export interface LogEvents {
  names: Set<string>;
  /** What the table above does not say, or says wrongly. */
  problems: string[];
}

export function findLogEvents(): LogEvents {
  const names = new Set<string>(['events_left_out']); // of the log itself
  const problems: string[] = [];
  const texts = new Set<string>();
  const unnamed = new Set<string>();
  for (const file of globSync('src/**/*.ts', { cwd: ROOT }).filter((path) => !path.startsWith('src/telemetry/'))) {
    const { program, errors } = parseSync(file, readFileSync(join(ROOT, file), 'utf8'));
    if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
    new Visitor({
      Literal: ({ value }) => {
        if (typeof value === 'string') texts.add(value);
      },
      CallExpression: ({ callee, arguments: [first] }) => {
        if (!isLogCall(callee) || first === undefined) return;
        const value = first.type === 'Literal' ? first.value : undefined;
        if (typeof value !== 'string') unnamed.add(file);
        else if (EVENT.test(value)) names.add(value);
        else problems.push(`${file}: "${value}" is no name of an event`);
      },
    }).visit(program);
  }
  for (const file of unnamed) {
    if (NAMED_ELSEWHERE[file] === undefined) problems.push(`${file} logs an event whose name is not written there`);
  }
  for (const [file, given] of Object.entries(NAMED_ELSEWHERE)) {
    if (!unnamed.has(file)) problems.push(`${file} logs no event that is named elsewhere`);
    for (const name of given) {
      if (!texts.has(name)) problems.push(`${name} is in no source`);
      names.add(name);
    }
  }
  return { names, problems };
}

/** `log.warn`, `this.#log.info`, `deps.log.error`, `log?.warn`. */
function isLogCall(callee: Node): boolean {
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return false;
  if (!LEVELS.has(callee.property.name)) return false;
  const { object } = callee;
  if (object.type === 'Identifier') return object.name === 'log';
  if (object.type !== 'MemberExpression') return false;
  const { property } = object;
  return (property.type === 'Identifier' || property.type === 'PrivateIdentifier') && property.name === 'log';
}
