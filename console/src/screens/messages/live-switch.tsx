/** The switch of the live view, with its status and the number of dropped entries. */
import type { LiveStatus } from '../../api/live.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';

interface Props {
  live: LiveStatus;
  isOn: boolean;
  change: (isOn: boolean) => void;
}

export function LiveSwitch({ live: { isOpen, lost, problem }, isOn, change }: Props) {
  return (
    <>
      {lost > 0 && (
        <span role="status" className="self-center text-xs text-warn">
          {lost.toLocaleString()} entries skipped: too many at once
        </span>
      )}
      {isOn && problem !== undefined && (
        <span role="status" className="self-center text-xs text-warn">
          {problem} Reconnecting…
        </span>
      )}
      <Button
        aria-pressed={isOn}
        onClick={() => change(!isOn)}
        title={isOn ? 'Stop live updates' : 'Show new entries as they arrive'}
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
