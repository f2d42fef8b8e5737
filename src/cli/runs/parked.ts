/** Has runs attempted at once that are parked, since the code of their workflow has changed. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Call, show } from '../http/verb.ts';

interface Resumed {
  resumed: number;
}

/** Whether a run of the name is active and was parked. */
export async function resumeIfParked(call: Call): Promise<boolean> {
  try {
    const { words } = call;
    const { resumed } = await call.server.ask<Resumed>('resumeParkedWorkflowRun', { words });
    if (resumed === 0) return false;
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === EXIT.notFound) return false;
    throw error;
  }
  show(call, { resumed: 1 }, 'It was parked, and is tried again now.');
  return true;
}

/** Those of the project; none is no failure, since a deployment asks for it in any case. */
export async function resumeAllParked(call: Call): Promise<number> {
  if (call.words.length > 0 || call.query.size > 0)
    throw new CommandFailed('--parked: goes with no ids and no filters', EXIT.usage);
  const answer = await call.server.ask<Resumed>('resumeParkedWorkflowRuns');
  const { resumed } = answer;
  return show(call, answer, `Resumed ${resumed} parked ${resumed === 1 ? 'run' : 'runs'}.`);
}
