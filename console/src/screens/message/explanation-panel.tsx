/** The server's explanation of why a message is waiting, or how it ended. */
import { Link } from '@tanstack/react-router';
import type { ResponseOf } from '../../api/client.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Sentence, Time } from '../../parts/time.tsx';

type Explanation = ResponseOf<'explainMessage'>;

const TONES: Partial<Record<Explanation['reason'], Tone>> = {
  delivered: 'good',
  dead: 'bad',
  cancelled: 'quiet',
  attempting: 'busy',
  delayed: 'quiet',
  due: 'quiet',
};

/** How many of the latest replays are linked. */
const SHOWN_REPLAYS = 5;

export function ExplanationPanel({
  explanation: { reason, explanation, due, since, ahead, blockedBy, dlqId, replays = [] },
}: {
  explanation: Explanation;
}) {
  return (
    <section
      aria-label="Explanation"
      className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border border-line bg-panel px-4 py-3"
    >
      <Badge tone={TONES[reason] ?? 'warn'}>{reason.replaceAll('_', ' ')}</Badge>
      <p className="min-w-0 flex-1 basis-64 text-base break-words">
        <Sentence>{explanation}</Sentence>
      </p>
      <p className="flex flex-wrap gap-x-4 text-quiet">
        {due !== undefined && (
          <span>
            due <Time atMs={due} />
          </span>
        )}
        {since !== undefined && (
          <span>
            started <Time atMs={since} />
          </span>
        )}
        {ahead !== undefined && <span>{ahead.toLocaleString()} ahead</span>}
        {blockedBy && (
          <Link
            to="/messages/$messageId"
            params={{ messageId: blockedBy.messageId }}
            className="text-accent hover:underline"
          >
            Blocked by
          </Link>
        )}
        {replays.slice(0, SHOWN_REPLAYS).map((id, index) => (
          <Link key={id} to="/messages/$messageId" params={{ messageId: id }} className="text-accent hover:underline">
            {replays.length === 1 ? 'Replay' : `Replay ${replays.length - index}`}
          </Link>
        ))}
        {dlqId !== undefined && (
          <Link to="/dlq" search={{ dlqIds: dlqId }} className="text-accent hover:underline">
            In the DLQ
          </Link>
        )}
      </p>
    </section>
  );
}
