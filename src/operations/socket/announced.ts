/** Workers that keep projects and tokens in memory are told of an operator's change before it is reported as done. */
import type { WorkerId } from '../../engine/model.ts';
import { type Administration, Refused } from './commands.ts';

/**
 * For a database that several workers share: a revocation is reported once all of them know of it. New projects and
 * tokens need no such wait: a worker looks for them when a request names one.
 */
export function confirmed(administration: Administration, tellAll: () => Promise<WorkerId[]>): Administration {
  return {
    listProjects: () => administration.listProjects(),
    listTokens: (request) => administration.listTokens(request),
    createProject: (request) => administration.createProject(request),
    createToken: (request) => administration.createToken(request),
    revokeToken: async (request) => {
      const entry = await administration.revokeToken(request);
      const behind = await tellAll();
      if (behind.length === 0) return entry;
      throw new Refused(
        `${entry.id} is revoked in the database, but these workers have not said that they know of it, and may let it in until they do: ${behind.join(', ')}`,
      );
    },
  };
}

/** `tell` resolves when all workers know. */
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
