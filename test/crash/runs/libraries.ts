/** The two workflow libraries. Each serves the programs, and a run may change from one to the other at any step. */
import * as ofOfficial from '@upstash/workflow';
import * as official from '@upstash/workflow/nextjs';
import * as ofOwn from '../../../packages/workflow/src/index.ts';
import * as own from '../../../packages/workflow/src/nextjs.ts';

export type LibraryName = 'official' | 'own';

/** The functions of a library that the programs and their server use. */
export interface Library {
  createWorkflow: typeof official.createWorkflow;
  serveMany: typeof official.serveMany;
  WorkflowMiddleware: typeof ofOfficial.WorkflowMiddleware;
  WorkflowNonRetryableError: typeof ofOfficial.WorkflowNonRetryableError;
}

export const LIBRARIES: Record<LibraryName, Library> = {
  official: { ...official, ...ofOfficial },
  own: { ...own, ...ofOwn } as unknown as Library,
};

/** `both`: one of the two handles each delivery. */
export type LibraryChoice = LibraryName | 'both';

export function libraryChoice(text: string): LibraryChoice {
  if (text === 'official' || text === 'own' || text === 'both') return text;
  throw new Error(`there is no library '${text}': official, own or both`);
}
