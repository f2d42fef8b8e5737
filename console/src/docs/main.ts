/**
 * Makes the API page (scripts/docs-page.ts) interactive: search, and a form for each operation. The values of the form
 * are inserted into the example, which can be sent to this server. The page is readable without this script.
 */

import { element } from './element.ts';
import { curlOf, type ExampleRequest } from './example-request.ts';
import { find } from './find.ts';
import { send } from './send.ts';

const token = element('input', {
  type: 'password',
  autocomplete: 'off',
  ariaLabel: 'Token',
  placeholder: 'Token (stays in this page)',
});
const search = element('input', {
  type: 'search',
  ariaLabel: 'Search',
  placeholder: 'Search operations, parameters, schemas',
});
const found = element('output', { className: 'quiet' });

document.querySelector('#tools')?.append(search, token, found);
search.addEventListener('input', () => {
  found.textContent = find(search.value);
});
search.addEventListener('keydown', (event) => {
  const first = document.querySelector<HTMLDetailsElement>('details.operation:not([hidden])');
  if (event.key !== 'Enter' || first === null) return;
  event.preventDefault(); // otherwise the key would close the focused entry again
  first.open = true;
  first.querySelector('summary')?.focus();
});

for (const operation of document.querySelectorAll<HTMLDetailsElement>('details.operation')) {
  // Fields are created on demand.
  operation.addEventListener('toggle', () => addForm(operation), { once: true });
}

const isTokenKnown = readEnvironment().catch(() => {}); // without a token, the user types it

/** The development server has a well-known token, so the user need not type it. */
async function readEnvironment(): Promise<void> {
  const response = await fetch('/console/environment.json');
  if (!response.ok) return;
  const environment = (await response.json()) as { token?: string; docsUrl?: string };
  token.value ||= environment.token ?? '';
  const { docsUrl: href } = environment;
  if (href !== undefined) document.querySelector('#tools')?.append(element('a', { href }, 'Guides'));
}

function addForm(operation: HTMLDetailsElement): void {
  const example = operation.querySelector('.example');
  const rows = [...operation.querySelectorAll<HTMLElement>('tr[data-name]')].map((row) => {
    const { in: where = '', name = '', example: value = '' } = row.dataset;
    const field = element('input', { value, ariaLabel: name });
    row.append(element('td', {}, field));
    return { in: where as ExampleRequest['parameters'][number]['in'], name, field };
  });
  const bodyContainer = operation.querySelector<HTMLElement>('.body');
  const body = element('textarea', {
    value: indented(bodyContainer?.dataset['example'] ?? ''),
    rows: 5,
    ariaLabel: 'Body',
  });
  bodyContainer?.append(body);

  const { method = '', path = '', public: isPublic } = operation.dataset;
  const request = (): ExampleRequest => ({
    method,
    path,
    isPublic: isPublic === 'true',
    parameters: rows.flatMap(({ in: where, name, field: { value } }) =>
      value === '' ? [] : [{ in: where, name, value }],
    ),
    body: body.value === '' ? undefined : body.value,
  });
  operation.addEventListener('input', () => {
    if (example !== null) example.textContent = curlOf(request());
  });

  const output = element('pre', { hidden: true, ariaLabel: 'Response' });
  const button = element('button', { type: 'button' }, 'Send');
  let controller = new AbortController();
  button.addEventListener('click', () => {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    void isTokenKnown.then(() => send(request(), { token: token.value, output, signal }));
  });
  // An endless response is read only while the entry of its operation is open.
  operation.addEventListener('toggle', () => controller.abort());
  example?.after(button, output);
}

function indented(json: string): string {
  return json === '' ? '' : JSON.stringify(JSON.parse(json), null, 2);
}
