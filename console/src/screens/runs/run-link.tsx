import { Link } from '@tanstack/react-router';

interface Props {
  id: string;
  createdAtMs?: number | undefined;
  children?: React.ReactNode;
}

/** To the page of a run. The time tells runs with the same id apart. */
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
