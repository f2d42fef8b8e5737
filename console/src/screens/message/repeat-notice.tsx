/** The link from a repeated message to the original message, whose id is kept in the URL. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { MessageLink } from '../messages/cells.tsx';

/** Opens the new message, with a link back to the original. */
export function useShowRepeated(originalId: string): (messageId: string) => void {
  const navigate = useNavigate();
  return (messageId) =>
    void navigate({ to: '/messages/$messageId', params: { messageId }, search: { repeats: originalId } });
}

export function RepeatNotice() {
  const { repeats } = useSearch({ from: '/messages/$messageId' });
  if (repeats === undefined) return null;
  return (
    <p role="status" className="flex min-w-0 gap-1 text-quiet">
      <span className="shrink-0">This is a copy of</span>
      <span className="min-w-0 text-accent">
        <MessageLink id={repeats}>{repeats}</MessageLink>
      </span>
    </p>
  );
}
