/**
 * Makes a tool of the page of the interface (scripts/docs-page.ts): it searches, and what is typed beside a parameter
 * goes into the example, which can be sent to this server. The page reads without it.
 */

import { element } from './element.ts';
import { curlOf, type ExampleRequest } from './example-request.ts';
import { find } from './find.ts';
import { send } from './send.ts';

const token = element('input', {
  type: 'password',
  autocomplete: 'off',
  ariaLabel: 'Token',
  placeholder: 'Token, kept in this page only',
});
const search = element('input', {
  type: 'search',
  ariaLabel: 'Search',
  placeholder: 'Search operations, parameters, shapes',
});
const found = element('output', { className: 'quiet' });

document.querySelector('#tools')?.append(search, token, found);
search.addEventListener('input', () => {
  found.textContent = find(search.value);
});
search.addEventListener('keydown', (event) => {
  const first = document.querySelector<HTMLDetailsElement>('details.operation:not([hidden])');
  if (event.key !== 'Enter' || first === null) return;
  event.preventDefault(); // the key would close again what then has the focus
  first.open = true;
  first.querySelector('summary')?.focus();
});

for (const operation of document.querySelectorAll<HTMLDetailsElement>('details.operation')) {
  // What nobody opens needs no fields.
  operation.addEventListener('toggle', () => equip(operation), { once: true });
}

const isTokenKnown = fillToken().catch(() => {}); // then it is typed

/** In development everybody knows the token, so nobody is asked for it. */
async function fillToken(): Promise<void> {
  const environment = await fetch('/console/environment.json');
  if (environment.ok) token.value ||= ((await environment.json()) as { token?: string }).token ?? '';
}

function equip(operation: HTMLDetailsElement): void {
  const example = operation.querySelector('.example');
  const rows = [...operation.querySelectorAll<HTMLElement>('tr[data-name]')].map((row) => {
    const { in: where = '', name = '', example: value = '' } = row.dataset;
    const field = element('input', { value, ariaLabel: name });
    row.append(element('td', {}, field));
    return { in: where as ExampleRequest['parameters'][number]['in'], name, field };
  });
  const bodyPlace = operation.querySelector<HTMLElement>('.body');
  const body = element('textarea', {
    value: indented(bodyPlace?.dataset['example'] ?? ''),
    rows: 5,
    ariaLabel: 'Body',
  });
  bodyPlace?.append(body);

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

  const answer = element('pre', { hidden: true, ariaLabel: 'Answer' });
  const button = element('button', { type: 'button' }, 'Send');
  let sending = new AbortController();
  button.addEventListener('click', () => {
    sending.abort();
    sending = new AbortController();
    const { signal } = sending;
    void isTokenKnown.then(() => send(request(), { token: token.value, answer, signal }));
  });
  // An answer without an end goes on only while it is seen.
  operation.addEventListener('toggle', () => sending.abort());
  example?.after(button, answer);
}

function indented(json: string): string {
  return json === '' ? '' : JSON.stringify(JSON.parse(json), null, 2);
}
