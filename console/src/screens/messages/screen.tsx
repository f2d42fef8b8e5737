/** All messages of the project: what became of each, each change, or what is not finished. */
import { Link } from '@tanstack/react-router';
import { Filters, filterOf, useFilter } from '../../parts/filters.tsx';
import { Page } from '../../parts/panel.tsx';
import { FIELDS, STATES_OF_LOG, STATES_OF_UNFINISHED } from './fields.ts';
import { LogList } from './log-list.tsx';
import { UnfinishedList } from './unfinished-list.tsx';

const VIEWS = [
  [undefined, 'Messages', 'One row for each message, by its latest change.'],
  ['changes', 'Every change', 'One row for each change of a state.'],
  ['unfinished', 'Unfinished', 'What waits or is being delivered, and why.'],
] as const;

export function Screen() {
  const [values] = useFilter();
  const [view, , about] = VIEWS.find(([name]) => name === values['view']) ?? VIEWS[0];
  const state = view === 'unfinished' ? STATES_OF_UNFINISHED : STATES_OF_LOG;
  const fields = [state, ...FIELDS];
  const filter = filterOf(fields, values);
  return (
    <Page title="Messages" about={about}>
      <nav aria-label="Views" className="flex flex-wrap gap-1">
        {VIEWS.map(([name, title]) => (
          <Link
            key={title}
            to="/messages"
            // The states are others.
            search={{ ...values, view: name, state: undefined }}
            aria-current={view === name ? 'true' : undefined}
            className="rounded-md px-3 py-1.5 text-quiet hover:bg-raised hover:text-text aria-[current=true]:bg-raised aria-[current=true]:font-medium aria-[current=true]:text-text"
          >
            {title}
          </Link>
        ))}
      </nav>
      <Filters fields={fields} />
      {view === 'unfinished' ? (
        <UnfinishedList filter={filter} />
      ) : (
        <LogList filter={filter} isFolded={view !== 'changes'} />
      )}
    </Page>
  );
}
