/** One schedule: its next times, its latest messages, and its actions. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type ResponseOf, useCall } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { StateBadge } from '../../parts/badge.tsx';
import { Body } from '../../parts/body.tsx';
import { Code } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { TextField } from '../../parts/field.tsx';
import { Facts } from '../../parts/panel.tsx';
import { QueryResult } from '../../parts/states.tsx';
import { exactTime, Time } from '../../parts/time.tsx';
import { bodyOf, isRedacted, messageHeaders, scheduleHeaders } from './as-request.ts';
import { timeZoneOf, upcomingTimes } from './upcoming.ts';

type Schedule = ResponseOf<'getSchedule'>;

const UPCOMING_COUNT = 10;
const LATEST_COUNT = 10;
const ENTRIES_READ = 200;

export function ScheduleDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const { scheduleId, isPaused, body, bodyBase64, error } = schedule;
  const path = { scheduleId };
  return (
    <Dialog
      title={scheduleId}
      onClose={onClose}
      actions={
        <>
          <Action
            operation="deleteSchedule"
            input={{ path: { destinationOrScheduleId: scheduleId } }}
            kind="danger"
            question={`Deletes ${scheduleId}. Messages that it has published are not affected.`}
            onDone={onClose}
          >
            Delete
          </Action>
          <Action operation={isPaused ? 'resumeSchedule' : 'pauseSchedule'} input={{ path }}>
            {isPaused ? 'Resume' : 'Pause'}
          </Action>
          {!isRedacted(schedule) && <RunNow schedule={schedule} />}
        </>
      }
    >
      <div className="flex flex-col gap-5">
        {error !== undefined && <p className="text-bad">The last trigger failed: {error}</p>}
        <Edit schedule={schedule} />
        <Upcoming schedule={schedule} />
        <LatestMessages scheduleId={scheduleId} />
        <section className="flex flex-col gap-2">
          <h3 className="font-semibold">Message</h3>
          <Facts
            facts={[
              ['Destination', <Code key="d">{schedule.destination}</Code>],
              ['Method', schedule.method],
              ['Retries', schedule.retries],
              ['Queue', schedule.queueName],
              ['Flow control', schedule.flowControlKey],
              ['Missed times', schedule.catchUp],
              ['Overlap', schedule.overlap],
            ]}
          />
          <Body text={body} base64={bodyBase64} />
        </section>
      </div>
    </Dialog>
  );
}

/** Publishes the message of the schedule now. */
function RunNow({ schedule }: { schedule: Schedule }) {
  const { destination, queueName } = schedule;
  const request = { headers: messageHeaders(schedule), body: bodyOf(schedule) };
  if (queueName !== undefined)
    return (
      <Action operation="enqueue" input={{ path: { queueName, destination }, ...request }} kind="main">
        Run now
      </Action>
    );
  return (
    <Action operation="publish" input={{ path: { destination }, ...request }} kind="main">
      Run now
    </Action>
  );
}

function Edit({ schedule }: { schedule: Schedule }) {
  const [cron, setCron] = useState(schedule.cron);
  const [destination, setDestination] = useState(schedule.destination);
  if (isRedacted(schedule))
    return <p className="text-quiet">This schedule cannot be edited here, because part of it is redacted.</p>;
  const isChanged = cron !== schedule.cron || destination !== schedule.destination;
  return (
    <div className="flex flex-wrap items-end gap-3">
      <div className="min-w-64 flex-1">
        <TextField label="Cron" className="font-mono" value={cron} onChange={({ target }) => setCron(target.value)} />
      </div>
      <div className="min-w-64 flex-1">
        <TextField label="Destination" value={destination} onChange={({ target }) => setDestination(target.value)} />
      </div>
      {isChanged && (
        <Action
          operation="createSchedule"
          input={{
            path: { destinationOrScheduleId: destination },
            headers: scheduleHeaders({ ...schedule, cron }),
            body: bodyOf(schedule),
          }}
          kind="main"
        >
          Save
        </Action>
      )}
    </div>
  );
}

function Upcoming({ schedule: { cron, isPaused, nextScheduleTime } }: { schedule: Schedule }) {
  if (isPaused) return null;
  const zone = timeZoneOf(cron);
  const times = [nextScheduleTime, ...upcomingTimes(cron, nextScheduleTime, UPCOMING_COUNT - 1, nextScheduleTime)];
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">Next times</h3>
      <table className="text-left">
        <thead>
          <tr className="text-xs text-quiet">
            <th className="pr-6 font-medium">{zone}</th>
            <th className="font-medium">Local time</th>
          </tr>
        </thead>
        <tbody>
          {times.map((atMs) => (
            <tr key={atMs} className="tabular-nums">
              <td className="pr-6">{exactTime(atMs, zone)}</td>
              <td>{exactTime(atMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The latest messages of the schedule, with their latest state. */
function LatestMessages({ scheduleId }: { scheduleId: string }) {
  const events = useCall('listEvents', { query: { scheduleId: [scheduleId], count: ENTRIES_READ } });
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">Latest messages</h3>
      <QueryResult query={events}>
        {({ events: entries }) => {
          const latest = new Map(entries.toReversed().map((entry) => [entry.messageId, entry]));
          const messages = [...latest.values()].toSorted((a, b) => b.time - a.time).slice(0, LATEST_COUNT);
          if (messages.length === 0) return <p className="text-quiet">None yet.</p>;
          return (
            <ul className="flex flex-col gap-1">
              {messages.map(({ messageId, state, time }) => (
                <li key={messageId} className="flex flex-wrap items-center gap-3">
                  <StateBadge state={state} />
                  <Time atMs={time} />
                  <Link to="/messages/$messageId" params={{ messageId }} className="text-accent hover:underline">
                    <Code>{messageId}</Code>
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </QueryResult>
    </section>
  );
}
