/** The messages of the project: one row per message, every state change, or only unfinished messages. */
import { Button } from '../../parts/button.tsx';
import { Filters, filterOf, useFilter } from '../../parts/filters.tsx';
import { Page } from '../../parts/panel.tsx';
import { FIELDS, STATES_OF_LOG, STATES_OF_UNFINISHED } from './fields.ts';
import { LogList } from './log-list.tsx';
import { UnfinishedList } from './unfinished-list.tsx';

const VIEWS = [
  [undefined, 'Messages', 'One row per message, with its latest state.'],
  ['changes', 'All changes', 'One row per state change.'],
  ['unfinished', 'Unfinished', 'Waiting, held and active messages, with the reason.'],
] as const;

export function Screen() {
  const [values, change] = useFilter();
  const [view, , about] = VIEWS.find(([name]) => name === values['view']) ?? VIEWS[0];
  const state = view === 'unfinished' ? STATES_OF_UNFINISHED : STATES_OF_LOG;
  const fields = [state, ...FIELDS];
  const filter = filterOf(fields, values);
  return (
    <Page title="Messages" about={about}>
      <fieldset aria-label="View" className="flex flex-wrap gap-1">
        {VIEWS.map(([name, title]) => (
          <Button
            key={title}
            kind={view === name ? 'plain' : 'quiet'}
            aria-pressed={view === name}
            // Each view has its own states.
            onClick={() => change({ view: name, state: undefined })}
          >
            {title}
          </Button>
        ))}
      </fieldset>
      <Filters fields={fields} />
      {view === 'unfinished' ? (
        <UnfinishedList filter={filter} />
      ) : (
        <LogList filter={filter} isGrouped={view !== 'changes'} />
      )}
    </Page>
  );
}
