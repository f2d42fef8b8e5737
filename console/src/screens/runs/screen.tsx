/** Workflow runs, with tabs for failed runs in the DLQ and for runs that wait for events. */
import { Link } from '@tanstack/react-router';
import { type FilterField, Filters, filterOf, useFilter } from '../../parts/filters.tsx';
import { Page } from '../../parts/panel.tsx';
import { FailedList } from './failed-list.tsx';
import { FAILED_FIELDS, RUN_FIELDS, WAITING_FIELDS } from './fields.ts';
import { RunList } from './run-list.tsx';
import { WaitingList } from './waiting-list.tsx';

const TABS = [
  [undefined, 'All runs'],
  ['failed', 'Failed (DLQ)'],
  ['waiting', 'Waiting for events'],
] as const;

const ALL = { fields: RUN_FIELDS, List: RunList };
/** The lists by the value of `view` in the URL. */
const LISTS: Record<string, { fields: readonly FilterField[]; List: typeof RunList }> = {
  failed: { fields: FAILED_FIELDS, List: FailedList },
  waiting: { fields: WAITING_FIELDS, List: WaitingList },
};

export function Screen() {
  const [values] = useFilter();
  const { fields, List } = LISTS[values['view'] ?? ''] ?? ALL;
  const filter = filterOf(fields, values);
  // A changed filter shows another list, in which nothing is selected.
  const key = JSON.stringify(filter);
  return (
    <Page title="Workflow runs" about="Durable functions: each step is executed once, and its result is saved.">
      <nav aria-label="Views" className="flex gap-1 border-b border-line">
        {TABS.map(([view, text]) => (
          <Link
            key={text}
            to="/runs"
            search={{ ...values, view }}
            activeOptions={{ exact: true, includeSearch: true }}
            className="-mb-px border-b-2 border-transparent px-3 py-1.5 text-quiet hover:text-text aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-text"
          >
            {text}
          </Link>
        ))}
      </nav>
      <Filters fields={fields} />
      <List key={key} filter={filter} />
    </Page>
  );
}
