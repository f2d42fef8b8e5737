import { useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { TextField } from '../../parts/field.tsx';

interface Props {
  of: ResponseOf<'getFlowControlKey'>;
  onClose: () => void;
}

/** Pins the limits of a key, so that messages no longer change the limits. A limit whose field is empty is not pinned. */
export function PinDialog({ of: key, onClose }: Props) {
  const [parallelism, setParallelism] = useState(textOf(key.parallelismMax));
  const [rate, setRate] = useState(textOf(key.rateMax));
  const [period, setPeriod] = useState(textOf(key.ratePeriod));
  const query = {
    ...numberOf('parallelism', parallelism),
    ...numberOf('rate', rate),
    ...(rate !== '' && numberOf('period', period)),
  };
  return (
    <Dialog
      title={`Pin ${key.flowControlKey}`}
      onClose={onClose}
      actions={
        <Action
          operation="pinFlowControlKey"
          input={{ path: { flowControlKey: key.flowControlKey }, query }}
          kind="main"
          onDone={onClose}
        >
          Pin
        </Action>
      }
    >
      <p className="mb-4 text-quiet">
        Messages that use this key no longer change the pinned limits, until you unpin them.
      </p>
      <div className="grid gap-3 sm:grid-cols-3">
        <TextField
          label="Parallelism"
          type="number"
          min="1"
          value={parallelism}
          onChange={({ target }) => setParallelism(target.value)}
        />
        <TextField label="Rate" type="number" min="1" value={rate} onChange={({ target }) => setRate(target.value)} />
        <TextField
          label="Period (seconds)"
          type="number"
          min="1"
          value={period}
          onChange={({ target }) => setPeriod(target.value)}
        />
      </div>
    </Dialog>
  );
}

function textOf(limit: number): string {
  return limit === 0 ? '' : String(limit);
}

function numberOf<Name extends string>(name: Name, text: string): { [name in Name]?: number } {
  return text === '' ? {} : ({ [name]: Number(text) } as { [name in Name]: number });
}
