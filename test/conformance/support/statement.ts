/** A statement of the contract, and how it is tested: in one test, on its own server. */
import { describe, it } from 'vitest';
import { Subject, type SubjectOptions } from './subject.ts';

export interface Statement {
  /** `M12`, `W12`: statement 12 of a checklist (contract M 29, W 26). `I3`, `C1`: statements with numbers of our own. */
  id: string;
  /** The rule, in one sentence of our own. */
  text: string;
  /** Tests the statement on a new server. */
  test: (server: Subject) => Promise<void>;
  /** Settings that the server of this test needs, as flags. */
  flags?: readonly string[];
  /** Tested with one worker only: with two, either may claim due messages or receive the first request. */
  isOfOneWorker?: true;
  /** Our deviation from the contract, with its reason, in Markdown. The test checks our behaviour. */
  deviation?: string;
}

export interface Section {
  title: string;
  statements: readonly Statement[];
}

type Terms = Pick<Statement, 'flags' | 'isOfOneWorker' | 'deviation'>;

export function statement(
  id: string,
  text: string,
  test: (server: Subject) => Promise<void>,
  terms: Terms = {},
): Statement {
  return { id, text, test, ...terms };
}

/** Registers the tests, which share nothing and run concurrently. */
export function tryStatements(
  sections: readonly Section[],
  options: Pick<SubjectOptions, 'database' | 'workers'> = {},
): void {
  for (const { title, statements } of sections) {
    describe.concurrent(title, () => {
      for (const { id, text, test, flags = [], isOfOneWorker = false } of statements) {
        if (isOfOneWorker && options.workers === 2) continue;
        it(`${id} ${text}`, async ({ onTestFinished }) => {
          // Statements do not depend on the database thread, and starting hundreds of threads takes most of the time.
          const server = await Subject.open({ ...options, flags, isStoreInline: true });
          onTestFinished(() => server.close());
          await test(server);
        });
      }
    });
  }
}
