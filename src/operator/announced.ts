/** What an operator changes, told to others who keep it in memory before it is reported as done. */
import type { Administration } from './commands.ts';

/** `tell` resolves when all know. */
export function announced(administration: Administration, tell: () => Promise<void>): Administration {
  const told = async <T>(done: Promise<T>): Promise<T> => {
    const answer = await done;
    await tell();
    return answer;
  };
  return {
    listProjects: () => administration.listProjects(),
    listTokens: (request) => administration.listTokens(request),
    createProject: (request) => told(administration.createProject(request)),
    createToken: (request) => told(administration.createToken(request)),
    revokeToken: (request) => told(administration.revokeToken(request)),
  };
}
