import { Link } from '@tanstack/react-router';

interface Props {
  id: string;
  createdAtMs?: number | undefined;
  children?: React.ReactNode;
}

/** A link to a run. The time distinguishes runs with the same id. */
export function RunLink({ id, createdAtMs, children }: Props) {
  return (
    <Link
      to="/runs/$runId"
      params={{ runId: id }}
      search={createdAtMs === undefined ? {} : { at: String(createdAtMs) }}
      className="text-accent underline decoration-from-font underline-offset-2 break-all"
    >
      {children ?? id}
    </Link>
  );
}
