import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { type ResponseOf, useCall } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Name } from '../../parts/copy.tsx';
import { TextField } from '../../parts/field.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { duration } from '../../parts/time.tsx';
import { PinDialog } from './pin-dialog.tsx';

type Key = ResponseOf<'getFlowControlKey'>;

const NUMBER = 'text-right tabular-nums';

const COLUMNS: readonly Column<Key>[] = [
  { name: 'Key', cell: ({ flowControlKey }) => <Name>{flowControlKey}</Name> },
  { name: 'State', cell: (key) => <KeyState of={key} /> },
  { name: 'Waiting', className: NUMBER, cell: ({ waitListSize }) => waitListSize.toLocaleString() },
  {
    name: 'In flight',
    className: NUMBER,
    cell: ({ parallelismCount, parallelismMax }) =>
      parallelismMax === 0 ? `${parallelismCount} (no limit)` : `${parallelismCount} of ${parallelismMax}`,
  },
  {
    name: 'Started this period',
    className: NUMBER,
    cell: ({ rateCount, rateMax, ratePeriod }) =>
      rateMax === 0 ? 'no limit' : `${rateCount} of ${rateMax} per ${duration(ratePeriod * 1_000)}`,
  },
  { name: '', className: 'text-right', cell: (key) => <Actions of={key} /> },
];

export function Screen() {
  const { search = '', cursor } = useSearch({ from: '/flow-control' });
  const navigate = useNavigate({ from: '/flow-control' });
  const keys = useCall('listFlowControlKeys', { query: { search, ...(cursor !== undefined && { cursor }) } });
  return (
    <Page title="Flow control" about="A key limits how many attempts run at a time, and how many start per period.">
      <div className="max-w-sm">
        <TextField
          label="Key contains"
          type="search"
          value={search}
          onChange={({ target }) => void navigate({ search: { search: target.value }, replace: true })}
        />
      </div>
      <Panel>
        <QueryResult query={keys}>
          {({ flowControls, cursor: next }) => (
            <>
              {flowControls.length === 0 ? (
                <Empty title={search === '' ? 'No flow-control keys yet' : `No key contains ${search}`}>
                  Publish with <code>Upstash-Flow-Control-Key: crm</code> and{' '}
                  <code>Upstash-Flow-Control-Value: parallelism=5, rate=10, period=1m</code>.
                </Empty>
              ) : (
                <Table
                  label="Flow-control keys"
                  columns={COLUMNS}
                  rows={flowControls}
                  keyOf={({ flowControlKey }) => flowControlKey}
                />
              )}
              {next !== undefined && (
                <Button className="mt-6" onClick={() => void navigate({ search: { search, cursor: next } })}>
                  Next page
                </Button>
              )}
            </>
          )}
        </QueryResult>
      </Panel>
    </Page>
  );
}

function KeyState({ of: { isPaused, isPinnedParallelism, isPinnedRate } }: { of: Key }) {
  return (
    <span className="inline-flex gap-1">
      {isPaused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">active</Badge>}
      {(isPinnedParallelism || isPinnedRate) && <Badge tone="busy">pinned</Badge>}
    </span>
  );
}

function Actions({ of: key }: { of: Key }) {
  const [isPinning, setIsPinning] = useState(false);
  const path = { flowControlKey: key.flowControlKey };
  return (
    <span className="inline-flex gap-2">
      <Action operation={key.isPaused ? 'resumeFlowControlKey' : 'pauseFlowControlKey'} input={{ path }}>
        {key.isPaused ? 'Resume' : 'Pause'}
      </Action>
      <Button onClick={() => setIsPinning(true)}>Pin</Button>
      {(key.isPinnedParallelism || key.isPinnedRate) && (
        <Action operation="unpinFlowControlKey" input={{ path, query: { parallelism: true, rate: true } }}>
          Unpin
        </Action>
      )}
      <Action
        operation="resetFlowControlKeyRate"
        input={{ path }}
        question={`Starts a new rate period for ${key.flowControlKey} now.`}
      >
        Reset rate
      </Action>
      {isPinning && <PinDialog of={key} onClose={() => setIsPinning(false)} />}
    </span>
  );
}
