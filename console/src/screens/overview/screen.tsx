import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { REFRESH_MS, type ResponseOf, useCall } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { countOf, countText } from '../../parts/count.ts';
import { Facts, Page, Panel } from '../../parts/panel.tsx';
import { QueryResult } from '../../parts/states.tsx';
import { Table } from '../../parts/table.tsx';
import { duration, Time, useNowMs } from '../../parts/time.tsx';
import { FirstMessage } from '../messages/first-message.tsx';
import { Chart } from './chart.tsx';
import { HeldTable } from './held-table.tsx';
import { chartDataOf, quantileOf, sumHistograms } from './series.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const RANGES = { '1h': HOUR_MS, '6h': 6 * HOUR_MS, '24h': 24 * HOUR_MS } as const;
type Range = keyof typeof RANGES;

const RATES = [
  { name: 'accepted', colour: 'busy' },
  { name: 'delivered', colour: 'good' },
  { name: 'failed attempts', colour: 'bad' },
];
const LATENCIES = [
  { name: 'p50', colour: 'good' },
  { name: 'p99', colour: 'warn' },
];

export function Screen() {
  const { range: given = '1h' } = useSearch({ from: '/overview' });
  const range: Range = given in RANGES ? (given as Range) : '1h';
  const navigate = useNavigate({ from: '/overview' });
  const overview = useCall('getOverview');
  // Once the log has an entry, the empty state is no longer shown, and the reloads stop.
  const latest = useCall(
    'listLogs',
    { query: { count: 1 } },
    { refreshMs: ({ logs }) => (logs.length === 0 ? REFRESH_MS : 0) },
  );
  return (
    <Page
      title="Overview"
      actions={(Object.keys(RANGES) as Range[]).map((each) => (
        <Button
          key={each}
          kind={each === range ? 'plain' : 'quiet'}
          aria-pressed={each === range}
          onClick={() => void navigate({ search: { range: each } })}
        >
          {each}
        </Button>
      ))}
    >
      {latest.data?.logs.length === 0 && (
        <Panel>
          <FirstMessage />
        </Panel>
      )}
      <Rates range={range} />
      <QueryResult query={overview}>{(data) => <CurrentState of={data} />}</QueryResult>
    </Page>
  );
}

function Rates({ range }: { range: Range }) {
  // Each new minute is a new query. Within a minute, the same query is reloaded.
  const toMs = Math.ceil(useNowMs() / MINUTE_MS) * MINUTE_MS;
  const fromMs = toMs - RANGES[range];
  const minutes = useCall('listMinutes', { query: { fromDate: fromMs, toDate: toMs } });
  return (
    <QueryResult query={minutes}>
      {(data) => {
        const { minutes: rows, bounds } = data;
        const sum = (member: 'accepted' | 'delivered' | 'failedAttempts' | 'dead'): string =>
          rows.reduce((total, row) => total + row[member], 0).toLocaleString();
        const responseTimeP99 = quantileOf(sumHistograms(rows, 'latency'), bounds, 0.99);
        const lag = sumHistograms(rows, 'lag');
        return (
          <>
            <div className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
              <Tile name="Accepted" value={sum('accepted')} />
              <Tile name="Delivered" value={sum('delivered')} />
              <Tile name="Failed attempts" value={sum('failedAttempts')} />
              <Tile name="Dead" value={sum('dead')} />
              <Tile name="p99 response time" value={durationText(responseTimeP99)} />
              <Tile name="p99 delivery lag" value={durationText(quantileOf(lag, bounds, 0.99))} />
            </div>
            <div className="grid gap-4 xl:grid-cols-2">
              <Panel title="Messages per minute">
                <Chart
                  label="Accepted and delivered messages, and failed attempts, per minute"
                  lines={RATES}
                  data={chartDataOf(data, fromMs, toMs, (minute) => [
                    minute?.accepted ?? 0,
                    minute?.delivered ?? 0,
                    minute?.failedAttempts ?? 0,
                  ])}
                />
              </Panel>
              <Panel title="Response time">
                {responseTimeP99 === null ? (
                  <p className="text-quiet">No attempt finished in this time range.</p>
                ) : (
                  <Chart
                    label="Response time per minute"
                    lines={LATENCIES}
                    data={chartDataOf(data, fromMs, toMs, (minute) => [
                      quantileOf(minute?.latency ?? [], bounds, 0.5),
                      quantileOf(minute?.latency ?? [], bounds, 0.99),
                    ])}
                    format={duration}
                  />
                )}
              </Panel>
            </div>
          </>
        );
      }}
    </QueryResult>
  );
}

function countedNoun(counted: ResponseOf<'getOverview'>['waiting'], noun: string): string {
  if (counted.isAtLeast && counted.count === 0) return `${noun}s: ${countText(counted)}`;
  return `${countText(counted)} ${noun}${counted.count === 1 ? '' : 's'}`;
}

function durationText(ms: number | null): string {
  return ms === null ? '–' : duration(ms);
}

function CurrentState({
  of: { unfinished, waiting, active, held, oldestDue, heldBack, dlq, failures, retention, storage, cell },
}: {
  of: ResponseOf<'getOverview'>;
}) {
  return (
    <>
      <div className="grid gap-4 xl:grid-cols-2">
        <Panel title="Now">
          <Facts
            facts={[
              [
                'Unfinished',
                <Link key="u" to="/messages" search={{ view: 'unfinished' }} className="text-accent underline">
                  {countText(unfinished)}
                </Link>,
              ],
              ['In flight', active.toLocaleString()],
              ['Waiting', countText(waiting)],
              ['Held', countText(held)],
              ['Oldest due message', oldestDue === undefined ? 'none' : <Time key="o" atMs={oldestDue} />],
              [
                'In the DLQ',
                <span key="d" className="inline-flex flex-wrap gap-x-4">
                  <Link to="/dlq" className="text-accent underline">
                    {countedNoun(dlq.messages, 'message')}
                  </Link>
                  <Link to="/runs" search={{ view: 'failed' }} className="text-accent underline">
                    {countedNoun(dlq.workflowRuns, 'run')}
                  </Link>
                </span>,
              ],
              ['Log retention', duration(retention.logs)],
              ['DLQ retention', duration(retention.dlq)],
              ['Database size', storage && storageText(storage)],
              ['Cell', cell],
            ]}
          />
        </Panel>
        <Panel title="Held messages">
          <HeldTable of={heldBack} />
        </Panel>
      </div>
      {failures.causes.length > 0 && (
        <Panel title="Failures by cause">
          <Table
            label="Failures by cause"
            rows={failures.causes}
            keyOf={({ responseStatus, error = '' }) => `${responseStatus} ${error}`}
            columns={[
              {
                name: 'Cause',
                cell: ({ responseStatus, error }) => (
                  <Badge tone="bad">
                    {responseStatus === 0 ? (error ?? 'no response') : `status ${responseStatus}`}
                  </Badge>
                ),
              },
              {
                name: 'Messages',
                cell: ({ responseStatus, count, workflowRuns }) =>
                  count > workflowRuns && (
                    <Link
                      to="/dlq"
                      search={{ responseStatus: String(responseStatus) }}
                      className="whitespace-nowrap text-accent underline"
                    >
                      {countOf(count - workflowRuns, 'message')}
                    </Link>
                  ),
              },
              {
                name: 'Runs',
                cell: ({ responseStatus, workflowRuns }) =>
                  workflowRuns > 0 && (
                    <Link
                      to="/runs"
                      search={{ view: 'failed', responseStatus: String(responseStatus) }}
                      className="whitespace-nowrap text-accent underline"
                    >
                      {countOf(workflowRuns, 'run')}
                    </Link>
                  ),
              },
              { name: 'Last', cell: ({ last }) => <Time atMs={last} /> },
            ]}
          />
          <p className="mt-6 text-quiet">From the latest {failures.lookedAt.toLocaleString()} DLQ entries.</p>
        </Panel>
      )}
    </>
  );
}

function storageText({ bytes, unusedBytes = 0 }: NonNullable<ResponseOf<'getOverview'>['storage']>): string {
  return `${sizeText(bytes)}${unusedBytes > 0 ? `, including ${sizeText(unusedBytes)} free for new data` : ''}`;
}

function sizeText(bytes: number): string {
  const [unit, unitBytes] = bytes < 1e9 ? ['MB', 1e6] : ['GB', 1e9];
  return `${(bytes / unitBytes).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${unit}`;
}

function Tile({ name, value }: { name: string; value: string }) {
  return (
    <div className="rounded-lg border border-line bg-panel px-4 py-3">
      <p className="text-xs text-quiet">{name}</p>
      <p className="text-xl font-semibold tabular-nums">{value}</p>
    </div>
  );
}
