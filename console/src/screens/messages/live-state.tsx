/** Whether what is new comes by itself, and what is missing of it. */
import type { Live } from '../../api/live.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';

interface Props {
  live: Live;
  isOn: boolean;
  change: (isOn: boolean) => void;
}

export function LiveState({ live: { isOpen, lost, trouble }, isOn, change }: Props) {
  return (
    <>
      {lost > 0 && (
        <span role="status" className="self-center text-xs text-warn">
          {lost.toLocaleString()} left out: too many at once
        </span>
      )}
      {isOn && trouble !== undefined && (
        <span role="status" className="self-center text-xs text-warn">
          {trouble} Tries again.
        </span>
      )}
      <Button
        aria-pressed={isOn}
        onClick={() => change(!isOn)}
        title={isOn ? 'Stop the live view' : 'Show what is new'}
      >
        Live
        {isOn ? (
          <Badge tone={isOpen ? 'good' : 'warn'}>{isOpen ? 'on' : 'connecting'}</Badge>
        ) : (
          <Badge tone="quiet">off</Badge>
        )}
      </Button>
    </>
  );
}
