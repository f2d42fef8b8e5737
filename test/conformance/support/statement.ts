/** A statement of the contract, and how it is tested: in one test, on its own server. */
import { describe, it } from 'vitest';
import { Subject, type SubjectOptions } from './subject.ts';

export interface Statement {
  /** `M12`, `W12`: statement 12 of a checklist (contract M 29, W 26). `I3`, `C1`: numbered here. */
  id: string;
  /** What must hold, in one sentence of our own. */
  text: string;
  /** Tries it on a fresh server. */
  test: (server: Subject) => Promise<void>;
  /** Settings that the server of this test needs, as flags. */
  flags?: readonly string[];
  /** Tried with one worker: of several, any may claim what is due, or be asked first. */
  isOfOneWorker?: true;
  /** Where we do something else than the contract says, and why; the test shows what we do. Markdown. */
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

/** Registers the tests. They share nothing, so that they run side by side. */
export function tryStatements(
  sections: readonly Section[],
  options: Pick<SubjectOptions, 'database' | 'workers'> = {},
): void {
  for (const { title, statements } of sections) {
    describe.concurrent(title, () => {
      for (const { id, text, test, flags = [], isOfOneWorker = false } of statements) {
        if (isOfOneWorker && options.workers === 2) continue;
        it(`${id} ${text}`, async ({ onTestFinished }) => {
          // How a thread is spoken to is no matter of a statement, and starting hundreds takes most of the time.
          const server = await Subject.open({ ...options, flags, isStoreInline: true });
          onTestFinished(() => server.close());
          await test(server);
        });
      }
    });
  }
}
