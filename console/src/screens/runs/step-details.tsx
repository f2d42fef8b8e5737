/** One step: its input, its output, and its attempts. */
import type { Step } from '../../generated/interface.ts';
import { Action } from '../../parts/action.tsx';
import { StateBadge } from '../../parts/badge.tsx';
import { Body } from '../../parts/body.tsx';
import { Button } from '../../parts/button.tsx';
import { Code } from '../../parts/copy.tsx';
import { Facts } from '../../parts/panel.tsx';
import { duration, exactTime, Time } from '../../parts/time.tsx';
import type { Run } from './data.ts';
import type { Attempt } from './deliveries.ts';
import type { Row } from './rows.ts';
import { RunLink } from './run-link.tsx';
import type { Bar } from './timeline.ts';
import { TruncatedBody } from './truncated-body.tsx';

/** Maps the states of a failure callback to the states of a step. */
const STEP_STATES: Record<string, string> = {
  CALLBACK_INPROGRESS: 'STEP_PROGRESS',
  CALLBACK_SUCCESS: 'STEP_SUCCESS',
  CALLBACK_FAIL: 'STEP_FAILED',
  CALLBACK_CANCELED: 'STEP_CANCELED',
};

export function StepDetails({ row: { bar, run }, onClose }: { row: Row; onClose: () => void }) {
  const { name, type, state, step, failure, fromMs, toMs, child, isReused } = bar;
  const delivery = step ?? bar.next ?? failure;
  const bodyOf = (whole: Run, read: (step: Step) => string | undefined): string | undefined => {
    const steps = whole.steps.flatMap((group) => (group.type === 'next' ? [] : group.steps));
    const same = steps.find(({ messageId, stepId }) => messageId === step?.messageId && stepId === step?.stepId);
    return same && read(same);
  };
  return (
    <section
      aria-label={`Step ${name}`}
      className="flex min-w-0 flex-col gap-3 self-start rounded-md border border-line p-3"
    >
      <header className="flex items-start justify-between gap-2">
        <h3 className="min-w-0 font-semibold break-words">
          <bdi>{name}</bdi>
        </h3>
        <Button kind="quiet" aria-label="Close the step" onClick={onClose}>
          ✕
        </Button>
      </header>
      <Facts
        facts={[
          ['State', <StateBadge key="" state={STEP_STATES[state] ?? state} />],
          ['Type', type],
          ['Started', isReused ? 'in the failed run' : exactTime(fromMs)],
          ['Duration', isReused || toMs === fromMs ? undefined : duration(toMs - fromMs)],
          ['Sleep duration', step?.sleepFor !== undefined && duration(step.sleepFor)],
          ['Sleeps until', step?.sleepUntil !== undefined && exactTime(step.sleepUntil)],
          ['Waits for event', step?.waitEventId && <Code>{step.waitEventId}</Code>],
          ['Wait timeout', waitEnd(bar)],
          ['Request', step?.callUrl && `${step.callMethod ?? ''} ${step.callUrl}`],
          ['Response status', step?.callResponseStatus],
          ['Invoked run', child && <RunLink id={child.id} createdAtMs={child.createdAtMs} />],
          ['Next attempt', delivery?.nextDeliveryTime !== undefined && <Time atMs={delivery.nextDeliveryTime} />],
          ['Message', <Code key="">{delivery?.messageId ?? ''}</Code>],
        ].map(([fact, value]) => [fact as string, value === false ? undefined : (value as React.ReactNode)] as const)}
      />
      {delivery?.nextDeliveryTime !== undefined && (
        <div>
          <Action operation="retryMessage" input={{ path: { messageId: delivery.messageId } }}>
            Attempt now
          </Action>
        </div>
      )}
      {step && inputOf(step) !== undefined && (
        <LabelledBody label="Input">
          <TruncatedBody run={run} text={inputOf(step)} pick={(whole) => bodyOf(whole, inputOf)} />
        </LabelledBody>
      )}
      {step && (
        <LabelledBody label={type === 'Initial' ? 'Input' : 'Output'}>
          <TruncatedBody run={run} text={outputOf(step)} pick={(whole) => bodyOf(whole, outputOf)} />
        </LabelledBody>
      )}
      {failure && (
        <LabelledBody label="Response">
          <Body text={failure.responseBody} />
        </LabelledBody>
      )}
      <Attempts attempts={bar.attempts} />
    </section>
  );
}

function waitEnd({ step }: Bar): React.ReactNode {
  if (step?.waitTimeoutDeadline === undefined) return undefined;
  return step.waitTimeout ? 'timed out' : exactTime(step.waitTimeoutDeadline);
}

function inputOf({ callBody, invokedWorkflowRunBody }: Step): string | undefined {
  return callBody ?? invokedWorkflowRunBody;
}

function outputOf({ callResponseBody, out }: Step): string | undefined {
  return callResponseBody ?? out;
}

function LabelledBody({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div className="flex flex-col gap-1">
      <h4 className="text-xs font-medium text-quiet">{label}</h4>
      {children}
    </div>
  );
}

function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return null;
  const isCall = attempts.some(({ purpose }) => purpose !== 'step');
  return (
    <div className="flex flex-col gap-1">
      <h4 className="text-xs font-medium text-quiet">Attempts</h4>
      <ol className="flex flex-col gap-1">
        {attempts.map(({ purpose, number, fromMs, toMs, error, response }) => (
          <li key={`${purpose} ${number}`} className="rounded-md border border-line px-2 py-1">
            <p className="flex flex-wrap gap-x-2">
              <span className="text-quiet">{isCall ? `${purpose} ${number}` : number}</span>
              <span className={error === undefined ? 'text-good' : 'break-words text-bad'}>
                {error ?? (toMs === undefined ? 'running' : 'succeeded')}
              </span>
              <span className="text-quiet tabular-nums" title={exactTime(fromMs)}>
                {toMs === undefined ? 'since' : `${duration(toMs - fromMs)},`} <Time atMs={fromMs} />
              </span>
            </p>
            {response !== undefined && (
              <details>
                <summary className="text-xs text-quiet">Response</summary>
                <Body text={response} />
              </details>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}
