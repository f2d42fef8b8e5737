/** The dead letter queue: dead messages with their last response, to retry or delete. */
import { useState } from 'react';
import { type ResponseOf, useChange } from '../../api/client.ts';
import { nextPageLoaderOf, usePages, useRows } from '../../api/pages.ts';
import { Badge } from '../../parts/badge.tsx';
import { Body } from '../../parts/body.tsx';
import type { Job } from '../../parts/bulk.ts';
import { BulkDialog } from '../../parts/bulk-dialog.tsx';
import { Button } from '../../parts/button.tsx';
import { Code } from '../../parts/copy.tsx';
import { countOf } from '../../parts/count.ts';
import { type FilterField, Filters, filterOf, useFilter } from '../../parts/filters.tsx';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Facts, Page, Panel } from '../../parts/panel.tsx';
import { Empty, Failure, QueryResult } from '../../parts/states.tsx';
import { exactTime, Time } from '../../parts/time.tsx';
import { contentOf } from '../message/content.ts';
import { useShowRepeated } from '../message/repeat-notice.tsx';
import { ExpandButton, MessageLink, Target } from '../messages/cells.tsx';
import { dlqJob } from './bulk.ts';
import { RetryDialog } from './retry-dialog.tsx';
import { isSelected, NONE, type Selection, toggled } from './selection.ts';

type DeadMessage = ResponseOf<'getDlqMessage'>;

const FIELDS: readonly FilterField[] = [
  { name: 'responseStatus', label: 'Status', kind: 'number', placeholder: '500, or 0 for no response' },
  { name: 'queueName', label: 'Queue' },
  { name: 'label', label: 'Label' },
  { name: 'url', label: 'URL (exact)', placeholder: 'https://…' },
  { name: 'messageId', label: 'Message id', placeholder: 'msg_…', isRare: true },
  { name: 'dlqIds', label: 'DLQ id', isRare: true },
  { name: 'flowControlKey', label: 'Flow-control key', isRare: true },
  { name: 'scheduleId', label: 'Schedule id', isRare: true },
  { name: 'topicName', label: 'URL group', isRare: true },
  { name: 'fromDate', label: 'From', kind: 'time', isRare: true },
  { name: 'toDate', label: 'To', kind: 'time', isRare: true },
];

const GRID =
  'grid-cols-[1.25rem_5.75rem_minmax(0,1fr)] md:grid-cols-[1.25rem_5.5rem_7rem_minmax(0,3fr)_minmax(0,3fr)_minmax(0,1fr)]';
const PAGE_COUNT = 100;

export function Screen() {
  const [values] = useFilter();
  const filter = filterOf(FIELDS, values);
  // A changed filter shows another list, in which nothing is selected.
  return (
    <Page title="DLQ" about="The dead letter queue: dead messages, with the last response to each.">
      <Filters fields={FIELDS} />
      <DlqList key={JSON.stringify(filter)} filter={filter} />
    </Page>
  );
}

function DlqList({ filter }: { filter: Record<string, string> }) {
  const [openKey, setOpenKey] = useState<string>();
  const [isPaused, setIsPaused] = useState(false);
  const [selection, setSelection] = useState<Selection>(NONE);
  const [job, setJob] = useState<Job>();
  const pages = usePages(
    'listDlqMessages',
    { query: { ...filter, count: PAGE_COUNT } as never },
    { isRefreshed: !isPaused },
  );
  const rows = useRows(pages.data, messagesOf);
  const ids = rows.map(({ dlqId }) => dlqId);
  const hasSome = selection.kind === 'all' || selection.ids.size > 0;
  const areAllLoaded = ids.length > 0 && ids.every((id) => isSelected(selection, id));
  const close = (): void => {
    setJob(undefined);
    setSelection(NONE);
  };
  const columns: ListColumn<DeadMessage>[] = [
    {
      name: 'Selected',
      className: 'overflow-hidden text-transparent',
      cell: ({ dlqId, url }) => (
        <input
          type="checkbox"
          aria-label={`Select ${dlqId}, ${url}`}
          className="block size-4 accent-accent"
          checked={isSelected(selection, dlqId)}
          onChange={() => setSelection(toggled(selection, dlqId, ids))}
        />
      ),
    },
    {
      name: 'Status',
      cell: ({ dlqId, responseStatus }) => (
        <span className="flex items-center gap-1">
          <ExpandButton isOpen={dlqId === openKey} toggle={() => setOpenKey(dlqId === openKey ? undefined : dlqId)} />
          <Badge tone="bad">{responseStatus === 0 ? 'none' : responseStatus}</Badge>
        </span>
      ),
    },
    { name: 'Dead since', className: 'text-quiet max-md:hidden', cell: ({ dlqId }) => <Time atMs={diedAtMs(dlqId)} /> },
    {
      name: 'Message',
      cell: (dead) => (
        <>
          <MessageLink id={dead.messageId}>
            <Target method={dead.method} url={dead.url} />
          </MessageLink>
          <p className="truncate text-xs text-bad md:hidden">{reasonOf(dead)}</p>
        </>
      ),
    },
    {
      name: 'Last response',
      className: 'max-md:hidden',
      cell: (dead) => (
        <p className="truncate" title={reasonOf(dead)}>
          {reasonOf(dead) || <span className="text-quiet">no body</span>}
        </p>
      ),
    },
    {
      name: 'Queue, labels',
      className: 'truncate text-quiet max-md:hidden',
      cell: ({ queueName, labels = [] }) => [queueName, ...labels].filter(Boolean).join(', '),
    },
  ];
  return (
    <Panel
      title={rows.length === 0 ? 'Messages' : countOf(rows.length, 'message', pages.hasNextPage)}
      actions={
        rows.length > 0 && (
          <>
            <label className="inline-flex h-8 items-center gap-2">
              <input
                type="checkbox"
                className="size-4 accent-accent"
                checked={areAllLoaded}
                onChange={() => setSelection(areAllLoaded ? NONE : { kind: 'some', ids: new Set(ids) })}
              />
              Select the {ids.length.toLocaleString()} loaded
            </label>
            {areAllLoaded && pages.hasNextPage && selection.kind === 'some' && (
              <Button onClick={() => setSelection({ kind: 'all' })}>
                {Object.keys(filter).length > 0 ? 'Select all that match the filter' : 'Select all'}
              </Button>
            )}
            <span className="self-center text-quiet tabular-nums" aria-live="polite">
              {selection.kind === 'all' ? 'all selected' : `${selection.ids.size.toLocaleString()} selected`}
            </span>
            <Button kind="main" disabled={!hasSome} onClick={() => setJob(dlqJob('retry', selection, filter))}>
              Retry
            </Button>
            <Button kind="danger" disabled={!hasSome} onClick={() => setJob(dlqJob('delete', selection, filter))}>
              Delete
            </Button>
          </>
        )
      }
    >
      <QueryResult query={pages}>
        {() =>
          rows.length === 0 && !pages.hasNextPage ? (
            <Empty title={Object.keys(filter).length > 0 ? 'No entry matches this filter' : 'The DLQ is empty'}>
              A message is moved here after its last retry has failed. You can retry it from here, with the same or
              other settings.
            </Empty>
          ) : (
            <LongList
              label="DLQ entries"
              columns={columns}
              grid={GRID}
              rows={rows}
              keyOf={({ dlqId }) => dlqId}
              openKey={openKey}
              detail={(dead) => <Detail dead={dead} />}
              onEnd={nextPageLoaderOf(pages)}
              onPause={setIsPaused}
            />
          )
        }
      </QueryResult>
      {job && <BulkDialog job={job} onClose={close} />}
    </Panel>
  );
}

function messagesOf({ messages }: ResponseOf<'listDlqMessages'>): readonly DeadMessage[] {
  return messages;
}

function Detail({ dead }: { dead: DeadMessage }) {
  const { dlqId, messageId, url, responseStatus, responseBody, responseBodyBase64, responseHeader = {} } = dead;
  const [isEdited, setIsEdited] = useState(false);
  const retry = useChange('retryDlqMessage');
  const remove = useChange('deleteDlqMessage');
  const show = useShowRepeated(messageId);
  const error = retry.error ?? remove.error;
  return (
    <div className="flex flex-col gap-3">
      <Facts
        facts={[
          [
            'Message',
            <MessageLink key="id" id={messageId}>
              <Code>{messageId}</Code>
            </MessageLink>,
          ],
          ['URL', <Code key="url">{url}</Code>],
          ['Dead since', exactTime(diedAtMs(dlqId))],
          ['Status', responseStatus === 0 ? 'no response' : responseStatus],
          ['Content type', responseHeader['Content-Type']?.join(', ')],
        ]}
      />
      <Body text={responseBody} base64={responseBodyBase64} />
      <div className="flex flex-wrap gap-2">
        <Button
          kind="main"
          disabled={retry.isPending}
          onClick={() => retry.mutate({ path: { dlqId } }, { onSuccess: (response) => show(response.messageId) })}
        >
          Retry now
        </Button>
        <Button onClick={() => setIsEdited(true)}>Retry with changes</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate({ path: { dlqId } })}>
          Delete
        </Button>
      </div>
      {error && <Failure error={error} />}
      {isEdited && (
        <RetryDialog dlqId={dlqId} content={contentOf(dead)} onClose={() => setIsEdited(false)} onRetried={show} />
      )}
    </div>
  );
}

/** Returns the body of the response, or the error if there was no response. */
function reasonOf({ responseBody, responseBodyBase64 }: DeadMessage): string {
  return (responseBody ?? (responseBodyBase64 === undefined ? '' : 'binary response')).slice(0, 500);
}

/** A DLQ id starts with the time at which the message died. */
function diedAtMs(dlqId: string): number {
  return Number(dlqId.split('-', 1)[0]);
}
