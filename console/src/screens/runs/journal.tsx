/** The raw JSON of a run: the journal while the run is active, the run itself, and its events. */
import { useState } from 'react';
import { useCall } from '../../api/client.ts';
import { Body } from '../../parts/body.tsx';
import { Button } from '../../parts/button.tsx';
import { Panel } from '../../parts/panel.tsx';
import { QueryResult } from '../../parts/states.tsx';
import type { RunWithEvents } from './data.ts';

const VIEWS = [
  ['journal', 'Journal'],
  ['run', 'Run'],
  ['events', 'Events'],
] as const;

export function Journal({ shown }: { shown: RunWithEvents }) {
  const isActive = shown.run.workflowState === 'RUN_STARTED';
  const views = isActive ? VIEWS : VIEWS.slice(1);
  const [view, setView] = useState<string>();
  return (
    <Panel
      title="Raw"
      actions={views.map(([name, text]) => (
        <Button
          key={name}
          kind={view === name ? 'plain' : 'quiet'}
          aria-expanded={view === name}
          onClick={() => setView(view === name ? undefined : name)}
        >
          {text}
        </Button>
      ))}
    >
      {view === undefined && (
        <p className="text-quiet">
          The JSON that the API returns for this run.
          {!isActive && ' The journal is available only while a run is active.'}
        </p>
      )}
      {view === 'journal' && isActive && <RawJournal runId={shown.run.workflowRunId} />}
      {view === 'run' && <RawRun shown={shown} />}
      {view === 'events' && <Body text={JSON.stringify(shown.events)} />}
    </Panel>
  );
}

/** The bodies in the journal are base64. Textual bodies are shown as text. */
function RawJournal({ runId }: { runId: string }) {
  const journal = useCall('getWorkflowRunJournal', { path: { workflowRunId: runId } });
  return (
    <QueryResult query={journal}>
      {(entries) => <Body text={JSON.stringify(entries.map((entry) => ({ ...entry, body: textOf(entry.body) })))} />}
    </QueryResult>
  );
}

/** Reloads the run with complete bodies. */
function RawRun({ shown: { run } }: { shown: RunWithEvents }) {
  const query = { workflowRunId: [run.workflowRunId], workflowCreatedAt: run.workflowRunCreatedAt };
  const whole = useCall('listWorkflowRuns', { query }, { refreshMs: 0 });
  return <QueryResult query={whole}>{({ runs }) => <Body text={JSON.stringify(runs[0])} />}</QueryResult>;
}

function textOf(base64: string): unknown {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.startsWith('{') ? JSON.parse(text) : text;
  } catch {
    return base64;
  }
}
