import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ResponseOf, useCall } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Name } from '../../parts/copy.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { ScheduleDialog } from './schedule-dialog.tsx';

type Schedule = ResponseOf<'getSchedule'>;

export function Screen() {
  const schedules = useCall('listSchedules');
  const { open: openId } = useSearch({ from: '/schedules' });
  const navigate = useNavigate({ from: '/schedules' });
  const setOpenId = (open?: string): void => void navigate({ search: { open } });
  const columns: readonly Column<Schedule>[] = [
    { name: 'Schedule', cell: ({ scheduleId }) => <Name>{scheduleId}</Name> },
    { name: 'State', cell: (schedule) => <ScheduleState of={schedule} /> },
    { name: 'Cron', cell: ({ cron }) => <code className="font-mono text-[0.92em]">{cron}</code> },
    { name: 'Destination', cell: ({ destination }) => <Name>{destination}</Name> },
    { name: 'Next', cell: ({ isPaused, nextScheduleTime }) => (isPaused ? '' : <Time atMs={nextScheduleTime} />) },
    {
      name: 'Last',
      cell: ({ lastScheduleTime }) => lastScheduleTime !== undefined && <Time atMs={lastScheduleTime} />,
    },
    {
      name: '',
      className: 'text-right',
      cell: ({ scheduleId }) => <Button onClick={() => setOpenId(scheduleId)}>Open</Button>,
    },
  ];
  return (
    <Page title="Schedules" about="A schedule publishes the same message at the times of a cron expression.">
      <Panel>
        <QueryResult query={schedules}>
          {(rows) => (
            <>
              {rows.length === 0 ? (
                <Empty title="No schedules yet">
                  Publish with <code>Upstash-Cron: 30 7 * * MON-FRI</code>, or call{' '}
                  <code>POST /v2/schedules/https://…</code>
                </Empty>
              ) : (
                <Table label="Schedules" columns={columns} rows={rows} keyOf={({ scheduleId }) => scheduleId} />
              )}
              {rows
                .filter(({ scheduleId }) => scheduleId === openId)
                .map((schedule) => (
                  <ScheduleDialog key={schedule.scheduleId} schedule={schedule} onClose={() => setOpenId(undefined)} />
                ))}
            </>
          )}
        </QueryResult>
      </Panel>
    </Page>
  );
}

function ScheduleState({ of: { isPaused, error, lastScheduleStates = {} } }: { of: Schedule }) {
  const states = Object.values(lastScheduleStates);
  if (isPaused) return <Badge tone="warn">paused</Badge>;
  if (error !== undefined) return <Badge tone="bad">trigger failed</Badge>;
  if (states.includes('FAIL')) return <Badge tone="bad">last message dead</Badge>;
  if (states.includes('IN_PROGRESS')) return <Badge tone="busy">in progress</Badge>;
  return <Badge tone="good">active</Badge>;
}
