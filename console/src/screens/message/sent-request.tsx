/** The content and settings of a message, also as code that publishes it again. */
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { asClientCode, asCurl } from '../../api/as-code.ts';
import { Body } from '../../parts/body.tsx';
import { Button } from '../../parts/button.tsx';
import { CodeBlock } from '../../parts/code-block.tsx';
import { Code, Copy } from '../../parts/copy.tsx';
import { Facts, Panel } from '../../parts/panel.tsx';
import { duration, exactTime, Time } from '../../parts/time.tsx';
import { MessageLink } from '../messages/cells.tsx';
import { type Content, requestOf } from './content.ts';

export function SentRequest({ content }: { content: Content }) {
  const { method, url, header = {}, body, callback, failureCallback, callbackHeader, failureCallbackHeader } = content;
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <Panel title="Message">
        <Facts
          facts={[
            ['Method', method],
            ['URL', <Code key="url">{url}</Code>],
            ['Created', content.createdAt && <Time atMs={content.createdAt} />],
            ['Not before', notBefore(content)],
            ['URL group', content.topicName && <FilterLink key="group" name="topicName" value={content.topicName} />],
            ['Endpoint', content.endpointName],
            ['Queue', content.queueName && <FilterLink key="queue" name="queueName" value={content.queueName} />],
            [
              'Flow control',
              content.flowControlKey && (
                <>
                  <FilterLink name="flowControlKey" value={content.flowControlKey} /> {limitsOf(content)}
                </>
              ),
            ],
            [
              'Schedule',
              content.scheduleId && <FilterLink key="schedule" name="scheduleId" value={content.scheduleId} />,
            ],
            ['Replay of', content.replayOf && <MessageLink id={content.replayOf}>{content.replayOf}</MessageLink>],
            [
              'Labels',
              content.labels?.map((label) => (
                <span key={label} className="mr-2">
                  <FilterLink name="label" value={label} />
                </span>
              )),
            ],
            ['Retries', content.maxRetries === 0 ? 'none' : `up to ${content.maxRetries}`],
            ['Retry delay', content.retryDelayExpression && <Code key="delay">{content.retryDelayExpression}</Code>],
            ['Timeout', content.timeout === undefined ? undefined : duration(content.timeout)],
            ['Client IP', content.callerIp],
          ]}
        />
      </Panel>
      <Panel title="Headers">
        <Headers header={header} />
      </Panel>
      <Panel title="Body">
        <Body {...(body ?? {})} />
      </Panel>
      {(callback !== undefined || failureCallback !== undefined) && (
        <Panel title="Callbacks">
          <Facts
            facts={[
              ['On response', callback && <Code key="url">{callback}</Code>],
              ['', callbackHeader && <Headers key="headers" header={callbackHeader} />],
              ['On failure', failureCallback && <Code key="url">{failureCallback}</Code>],
              [' ', failureCallbackHeader && <Headers key="headers" header={failureCallbackHeader} />],
            ]}
          />
        </Panel>
      )}
      <AsCode content={content} />
    </div>
  );
}

/** Links to all messages with the same value. */
function FilterLink({ name, value }: { name: string; value: string }) {
  return (
    <Link
      to="/messages"
      search={{ [name]: value }}
      title="Show all messages with this value"
      className="break-all text-accent hover:underline"
    >
      {value}
    </Link>
  );
}

function Headers({ header }: { header: Record<string, string[]> }) {
  const headers = Object.entries(header);
  if (headers.length === 0) return <p className="text-quiet">No custom headers.</p>;
  return (
    <div className="font-mono text-xs">
      <Facts facts={headers.map(([name, values]) => [name, values.join(', ') || '(empty)'])} />
    </div>
  );
}

function notBefore({ notBefore: atMs, createdAt }: Content): string | undefined {
  return atMs !== undefined && createdAt !== undefined && atMs > createdAt ? exactTime(atMs) : undefined;
}

function limitsOf({ parallelism, rate, period }: Content): string {
  const limits = [
    parallelism !== undefined && `${parallelism} at a time`,
    rate !== undefined && `${rate} per ${duration((period ?? 1) * 1_000)}`,
  ];
  return limits.filter(Boolean).join(', ');
}

/** Longer code is truncated: a browser would freeze with megabytes in one element. */
const SHOWN_CHARACTERS = 20_000;

const FORMS = [
  ['curl', asCurl],
  ['TypeScript', asClientCode],
] as const;

function AsCode({ content }: { content: Content }) {
  const [chosen, choose] = useState<string>('curl');
  const [, write] = FORMS.find(([name]) => name === chosen) ?? FORMS[0];
  const code = useMemo(() => write(requestOf(content), location.origin), [write, content]);
  return (
    <Panel title="As code">
      <div className="flex flex-col gap-2">
        <div className="flex flex-wrap gap-1">
          {FORMS.map(([name]) => (
            <Button
              key={name}
              kind={name === chosen ? 'plain' : 'quiet'}
              aria-pressed={name === chosen}
              onClick={() => choose(name)}
            >
              {name}
            </Button>
          ))}
          <Copy text={code} />
        </div>
        <CodeBlock label={chosen}>{code.slice(0, SHOWN_CHARACTERS)}</CodeBlock>
        {code.length > SHOWN_CHARACTERS && <p className="text-xs text-quiet">Truncated. Copy copies all of it.</p>}
      </div>
    </Panel>
  );
}
