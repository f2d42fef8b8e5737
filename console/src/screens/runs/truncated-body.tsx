/** A body of a run. The timeline loads bodies truncated. The complete body is loaded on demand. */
import { useState } from 'react';
import { useCall } from '../../api/client.ts';
import { Body } from '../../parts/body.tsx';
import { Button } from '../../parts/button.tsx';
import { Failure } from '../../parts/states.tsx';
import { type Run, type RunReference, SHOWN_BYTES } from './data.ts';

interface Props {
  run: RunReference;
  text: string | undefined;
  /** Selects the body in the complete run. */
  pick: (whole: Run) => string | undefined;
}

export function TruncatedBody({ run, text, pick }: Props) {
  const [isWhole, setIsWhole] = useState(false);
  const query = { workflowRunId: [run.id], ...(run.createdAtMs && { workflowCreatedAt: run.createdAtMs }), count: 1 };
  const { data, error } = useCall('listWorkflowRuns', { query }, { isEnabled: isWhole, refreshMs: 0 });
  const whole = isWhole && data?.runs[0] ? pick(data.runs[0]) : undefined;
  // Cutting a UTF-8 character leaves up to three bytes less.
  const isTruncated = text !== undefined && new TextEncoder().encode(text).length > SHOWN_BYTES - 4;
  return (
    <div className="flex flex-col items-start gap-2 *:w-full">
      <Body text={whole ?? text} />
      {isTruncated && whole === undefined && (
        <p className="flex flex-wrap items-center gap-2 text-xs text-quiet">
          The first {SHOWN_BYTES.toLocaleString()} bytes.
          <Button disabled={isWhole && !error} onClick={() => setIsWhole(true)}>
            Load all
          </Button>
        </p>
      )}
      {error && <Failure error={error} />}
    </div>
  );
}
