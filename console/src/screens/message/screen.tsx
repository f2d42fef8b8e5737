/** One message: the explanation of its state, its attempts, and its content. */

import { useParams } from '@tanstack/react-router';
import { useMemo } from 'react';
import { REFRESH_MS, type ResponseOf, useCall } from '../../api/client.ts';
import { nextPageLoaderOf, usePages, useRows } from '../../api/pages.ts';
import { Button } from '../../parts/button.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { Actions } from './actions.tsx';
import { type Content, contentOf, contentOfEntry } from './content.ts';
import { ExplanationPanel } from './explanation-panel.tsx';
import { RepeatNotice } from './repeat-notice.tsx';
import { SentRequest } from './sent-request.tsx';
import { Timeline } from './timeline.tsx';
import { type Entry, timelineOf } from './timeline-items.ts';

const FINAL_STATES: readonly string[] = ['DELIVERED', 'FAILED', 'CANCELED'];
const FINAL_REASONS: readonly string[] = ['delivered', 'dead', 'cancelled'];
const DELAYED_REASONS: readonly string[] = ['delayed', 'retrying'];
const PAGE_COUNT = 200;

export function Screen() {
  const { messageId } = useParams({ from: '/messages/$messageId' });
  const log = usePages(
    'listLogs',
    { query: { messageId, order: 'earliestFirst', count: PAGE_COUNT } },
    { isRefreshed: ({ logs }) => !isEnd(logs.at(-1)) },
  );
  const entries = useRows(log.data, logsOf);
  const isFinished = isEnd(entries.at(-1));
  const refreshMs = isFinished ? 0 : REFRESH_MS;
  const path = { messageId };
  // The explanation is reloaded until its own reason is final, since the log may show the end earlier.
  const explanation = useCall(
    'explainMessage',
    { path },
    { refreshMs: ({ reason }) => (FINAL_REASONS.includes(reason) ? 0 : REFRESH_MS) },
  );
  const message = useCall('getMessage', { path }, { refreshMs, isEnabled: log.isFetched && !isFinished });
  const dlqId = explanation.data?.dlqId;
  const dead = useCall(
    'getDlqMessage',
    { path: { dlqId: dlqId ?? '' } },
    { refreshMs: 0, isEnabled: dlqId !== undefined },
  );
  const isDead = dlqId !== undefined && dead.data?.dlqId === dlqId;
  const last = entries.at(-1);
  const stored = isDead ? dead.data : isFinished ? undefined : message.data;
  // Parsing a large body is slow.
  const content: Content | undefined = useMemo(
    () => (stored ? contentOf(stored) : last && contentOfEntry(last)),
    [stored, last],
  );

  return (
    <Page
      title={content === undefined ? 'Message' : content.url}
      about={
        <>
          <code className="font-mono text-xs break-all">{messageId}</code> <Copy text={messageId} label="Copy id" />
        </>
      }
      actions={
        content && (
          <Actions
            messageId={messageId}
            content={content}
            isFinished={isFinished}
            isDelayed={!isFinished && DELAYED_REASONS.includes(explanation.data?.reason ?? '')}
            dlqId={isDead ? dlqId : undefined}
          />
        )
      }
    >
      <RepeatNotice />
      {explanation.data && <ExplanationPanel explanation={explanation.data} />}
      {log.error && <Failure error={log.error} retry={() => void log.refetch()} />}
      {content === undefined && log.isFetched && !log.error && (
        <Panel>
          <Empty title="Message not found">The id is wrong, or the log of this message has expired.</Empty>
        </Panel>
      )}
      {content && (
        <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Panel title="Timeline">
            <Timeline items={timelineOf(entries)} isFinished={isFinished} />
            {log.hasNextPage && (
              <Button className="mt-3" disabled={log.isFetching} onClick={nextPageLoaderOf(log)}>
                Load more
              </Button>
            )}
          </Panel>
          <SentRequest content={content} />
        </div>
      )}
    </Page>
  );
}

function isEnd(last: Entry | undefined): boolean {
  return last !== undefined && FINAL_STATES.includes(last.state);
}

function logsOf({ logs }: ResponseOf<'listLogs'>): readonly Entry[] {
  return logs;
}
