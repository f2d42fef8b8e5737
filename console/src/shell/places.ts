/** Where a person can go from what was typed. Pure. */

export interface Place {
  /** `screen`, `message`, `queue`, … */
  kind: string;
  name: string;
  /** Below /console, with what stands after the `?`. */
  to: string;
}

/** Names that the server told of; absent until it has. */
export interface KnownNames {
  queues?: readonly string[] | undefined;
  schedules?: readonly string[] | undefined;
  flowControlKeys?: readonly string[] | undefined;
  urlGroups?: readonly string[] | undefined;
}

const PLACES_MAX = 12;

/** An id comes first, then screens, then names: those that begin with the text before those that contain it. */
export function placesFor(
  typed: string,
  screens: readonly (readonly [to: string, name: string])[],
  names: KnownNames,
): Place[] {
  const text = typed.trim();
  const lower = text.toLowerCase();
  const all: Place[] = [
    ...screens.map(([to, name]) => ({ kind: 'screen', name, to })),
    ...named('queue', names.queues, () => '/queues'),
    ...named('schedule', names.schedules, (name) => `/schedules?open=${encodeURIComponent(name)}`),
    ...named('flow-control key', names.flowControlKeys, (name) => `/flow-control?search=${encodeURIComponent(name)}`),
    ...named('URL group', names.urlGroups, () => '/url-groups'),
  ];
  const fitting = all.filter(({ name }) => name.toLowerCase().includes(lower));
  const beginsWith = ({ name }: Place): boolean => name.toLowerCase().startsWith(lower);
  const sorted = [...fitting.filter(beginsWith), ...fitting.filter((place) => !beginsWith(place))];
  return [...ofId(text), ...sorted, ...ofFilter(text)].slice(0, PLACES_MAX);
}

function named(kind: string, names: readonly string[] = [], to: (name: string) => string): Place[] {
  return names.map((name) => ({ kind, name, to: to(name) }));
}

function ofId(text: string): Place[] {
  const id = encodeURIComponent(text);
  if (/^msg_\S+$/.test(text)) return [{ kind: 'message', name: text, to: `/messages/${id}` }];
  if (/^wfr_\S+$/.test(text)) return [{ kind: 'run', name: text, to: `/runs/${id}` }];
  return [];
}

/** What is no name may be part of what messages have. */
function ofFilter(text: string): Place[] {
  if (text === '') return [];
  const value = encodeURIComponent(text);
  if (/^https?:\/\//i.test(text)) return [{ kind: 'messages to', name: text, to: `/messages?url=${value}` }];
  return [
    { kind: 'messages with the label', name: text, to: `/messages?label=${value}` },
    { kind: 'messages to the host', name: text, to: `/messages?host=${value}` },
  ];
}
