/** Resumes parked runs, whose workflow code has changed, without waiting for their next attempt. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Call, show } from '../http/verb.ts';

interface Resumed {
  resumed: number;
}

/** Resumes the run if it is parked. Resolves to false if the run does not exist or is not parked. */
export async function resumeIfParked(call: Call): Promise<boolean> {
  try {
    const { words } = call;
    const { resumed } = await call.server.ask<Resumed>('resumeParkedWorkflowRun', { words });
    if (resumed === 0) return false;
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === EXIT.notFound) return false;
    throw error;
  }
  show(call, { resumed: 1 }, 'Resumed the parked run.');
  return true;
}

/** Resumes all parked runs of the project. Succeeds without parked runs too, since every deployment may call this. */
export async function resumeAllParked(call: Call): Promise<number> {
  if (call.words.length > 0 || call.query.size > 0)
    throw new CommandFailed('--parked: cannot be combined with ids or filters', EXIT.usage);
  const response = await call.server.ask<Resumed>('resumeParkedWorkflowRuns');
  const { resumed } = response;
  return show(call, response, `Resumed ${resumed} parked ${resumed === 1 ? 'run' : 'runs'}.`);
}
