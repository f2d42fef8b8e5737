/** Has parked runs attempted at once (contract K 7). Our own addition. */
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer } from './answer.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { Count, exactly } from './schemas.ts';

const ResumedSchema = exactly({ resumed: Count });

export function parkedRunRoutes({ engine }: Services): Route[] {
  async function resumeOne({ projectId, id }: Call): Promise<Answer> {
    const wasParked = await engine.resumeParkedRun(projectId, id);
    if (wasParked === undefined) throw new ApiError('not_found', `workflow run ${id} is not active`);
    return answer(200, { resumed: wasParked ? 1 : 0 });
  }

  async function resumeAll({ projectId }: Call): Promise<Answer> {
    return answer(200, { resumed: await engine.resumeParkedRuns(projectId) });
  }

  return [
    {
      ...row('full', 'POST', '/v2/waypost/runs/:workflowRunId/resume', 'resumeParkedWorkflowRun'),
      summary: 'Attempts a workflow run at once if it is parked since its code has changed.',
      answers: { 200: ResumedSchema },
      handle: resumeOne,
    },
    {
      ...row('full', 'POST', '/v2/waypost/runs/resume', 'resumeParkedWorkflowRuns'),
      summary: 'Attempts all workflow runs at once that are parked since their code has changed, and counts them.',
      answers: { 200: ResumedSchema },
      handle: resumeAll,
    },
  ];
}
