import { measureSteps } from './workflows/steps.ts';
import { startWaypostContestant } from './workflows/waypost-runs.ts';
const figures = await measureSteps({ rounds: 1, warmUpRuns: 300, runs: 600, stallMs: 20000,
  contestants: (['bare, within a call', 'library', 'bare'] as const).map((e) => () => startWaypostContestant(e)),
  onLoad: (f) => console.log(f.contestant, f.load, f.runsPerSecond.toFixed(0), 'runs/s', 'server', f.serverCpuMsPerStep.toFixed(3), 'endpoint', f.endpointCpuMsPerStep.toFixed(3), 'bytes', f.bytesPerStep.toFixed(0)) });
