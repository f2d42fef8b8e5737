/** The specification of a store. A store joins with one call, and skips groups of cases that do not apply to it. */
import { describe } from 'vitest';
import { acceptConformance } from './accept.ts';
import { busyOriginsConformance } from './busy-origins.ts';
import { cancelConformance } from './cancel.ts';
import { cellsConformance } from './cells.ts';
import { checkpointConformance } from './checkpoints.ts';
import { claimConformance } from './claim.ts';
import { deadConformance } from './dead.ts';
import { deadRunsConformance } from './dead-runs.ts';
import { followsConformance } from './follows.ts';
import { lanesConformance } from './lanes.ts';
import { liveLogsConformance } from './live-logs.ts';
import { logsConformance } from './logs.ts';
import { makeDueConformance } from './make-due.ts';
import { minutesConformance } from './minutes.ts';
import { operatorEventsConformance } from './operator-events.ts';
import { projectsConformance } from './projects.ts';
import { replaysConformance } from './replays.ts';
import { retentionConformance } from './retention.ts';
import { runEndingsConformance } from './run-endings.ts';
import { runLogsConformance } from './run-logs.ts';
import { runsConformance } from './runs.ts';
import { schedulesConformance } from './schedules.ts';
import { settleConformance } from './settle.ts';
import { unfinishedConformance } from './unfinished.ts';
import { urlGroupsConformance } from './url-groups.ts';
import { waitersConformance } from './waiters.ts';
import { workersConformance } from './workers.ts';
import type { OpenStore } from './world.ts';

/** `open` gives an empty store with the schema; it is closed by the suite. `isShown`: whether such a store can show it. */
export function storeConformance(name: string, open: OpenStore, isShown = (_noun: string) => true): void {
  const nouns: [noun: string, cases: (open: OpenStore) => void][] = [
    ['accept', acceptConformance],
    ['claim', claimConformance],
    ['settle', settleConformance],
    ['follow-ups', followsConformance],
    ['checkpoints', checkpointConformance],
    ['cancel', cancelConformance],
    ['make due', makeDueConformance],
    ['unfinished', unfinishedConformance],
    ['replays', replaysConformance],
    ['dead', deadConformance],
    ['dead runs', deadRunsConformance],
    ['lanes', lanesConformance],
    ['keys at busy origins', busyOriginsConformance],
    ['logs', logsConformance],
    ['live logs', liveLogsConformance],
    ['minutes', minutesConformance],
    ['operator events', operatorEventsConformance],
    ['projects', projectsConformance],
    ['cells', cellsConformance],
    ['URL groups', urlGroupsConformance],
    ['schedules', schedulesConformance],
    ['waiters', waitersConformance],
    ['runs', runsConformance],
    ['ends of runs', runEndingsConformance],
    ['logs of runs', runLogsConformance],
    ['retention', retentionConformance],
    ['workers', workersConformance],
  ];
  describe(`${name} store`, () => {
    for (const [noun, cases] of nouns.filter(([each]) => isShown(each))) describe(noun, () => cases(open));
  });
}
