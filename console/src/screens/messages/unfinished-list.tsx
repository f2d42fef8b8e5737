/** Unfinished messages, newest first, with the reason why each is unfinished. */
import { useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { nextPageLoaderOf, usePages, useRows } from '../../api/pages.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Code } from '../../parts/copy.tsx';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Facts, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { exactTime, Sentence, Time } from '../../parts/time.tsx';
import { ExpandButton, MessageLink, Target } from './cells.tsx';

type Unfinished = ResponseOf<'listUnfinishedMessages'>['messages'][number];

const GRID = 'grid-cols-[8.5rem_minmax(0,1fr)] md:grid-cols-[9rem_minmax(0,3fr)_minmax(0,3fr)_8.5rem_minmax(0,1fr)]';
const TONES: Record<Unfinished['state'], Tone> = { waiting: 'quiet', active: 'busy', held: 'warn' };

export function UnfinishedList({ filter }: { filter: Record<string, string> }) {
  const [openKey, setOpenKey] = useState<string>();
  const [isPaused, setIsPaused] = useState(false);
  const pages = usePages('listUnfinishedMessages', { query: filter as never }, { isRefreshed: !isPaused });
  const rows = useRows(pages.data, messagesOf);
  const columns: ListColumn<Unfinished>[] = [
    {
      name: 'State',
      cell: ({ messageId, state }) => (
        <span className="flex items-center gap-1">
          <ExpandButton
            isOpen={messageId === openKey}
            toggle={() => setOpenKey(messageId === openKey ? undefined : messageId)}
          />
          <Badge tone={TONES[state]}>{state}</Badge>
        </span>
      ),
    },
    {
      name: 'Message',
      cell: ({ messageId, method, url, explanation }) => (
        <>
          <MessageLink id={messageId}>
            <Target method={method} url={url} />
          </MessageLink>
          <p className="line-clamp-3 text-xs wrap-anywhere text-quiet md:hidden">
            <Sentence>{explanation}</Sentence>
          </p>
        </>
      ),
    },
    {
      name: 'Reason',
      className: 'truncate max-md:hidden',
      cell: ({ explanation }) => (
        <span title={explanation}>
          <Sentence>{explanation}</Sentence>
        </span>
      ),
    },
    {
      name: 'Due',
      className: 'text-quiet max-md:hidden',
      cell: ({ due, since }) =>
        due !== undefined ? (
          <Time atMs={due} />
        ) : (
          since !== undefined && (
            <>
              started <Time atMs={since} />
            </>
          )
        ),
    },
    {
      name: 'Queue, labels',
      className: 'truncate text-quiet max-md:hidden',
      cell: ({ queueName, labels = [] }) => [queueName, ...labels].filter(Boolean).join(', '),
    },
  ];
  return (
    <Panel>
      <QueryResult query={pages}>
        {() =>
          rows.length === 0 && !pages.hasNextPage ? (
            <Empty title="No unfinished messages">
              {Object.keys(filter).length > 0
                ? 'No unfinished message matches this filter.'
                : 'All messages are delivered, dead or cancelled.'}
            </Empty>
          ) : (
            <LongList
              label="Unfinished messages"
              columns={columns}
              grid={GRID}
              rows={rows}
              keyOf={({ messageId }) => messageId}
              openKey={openKey}
              detail={(message) => <Detail message={message} />}
              onEnd={nextPageLoaderOf(pages)}
              onPause={setIsPaused}
            />
          )
        }
      </QueryResult>
    </Panel>
  );
}

function messagesOf({ messages }: ResponseOf<'listUnfinishedMessages'>): readonly Unfinished[] {
  return messages;
}

function Detail({ message }: { message: Unfinished }) {
  const { messageId, url, explanation, createdAt, due, retried, maxRetries, bodyBytes } = message;
  return (
    <Facts
      facts={[
        ['Reason', <Sentence key="why">{explanation}</Sentence>],
        [
          'Message',
          <MessageLink key="id" id={messageId}>
            <Code>{messageId}</Code>
          </MessageLink>,
        ],
        ['URL', <Code key="url">{url}</Code>],
        ['Created', exactTime(createdAt)],
        ['Due', due && exactTime(due)],
        ['Retries', `${retried} of ${maxRetries}`],
        ['Body', `${bodyBytes.toLocaleString()} bytes`],
        ['Queue', message.queueName],
        ['Flow-control key', message.flowControlKey],
        ['Schedule', message.scheduleId],
      ]}
    />
  );
}
