/** Finds the targets of the command palette for the typed text. Pure. */

export interface PaletteTarget {
  /** `screen`, `message`, `queue`, … */
  kind: string;
  name: string;
  /** The path below /console, with its query. */
  to: string;
}

/** Names from the server. A list is absent until it is loaded. */
export interface KnownNames {
  queues?: readonly string[] | undefined;
  schedules?: readonly string[] | undefined;
  flowControlKeys?: readonly string[] | undefined;
  urlGroups?: readonly string[] | undefined;
}

const TARGETS_MAX = 12;

/**
 * Returns an id first, then screens, then names. Names that start with the text come before other names that contain the
 * text.
 */
export function paletteTargetsFor(
  typed: string,
  screens: readonly (readonly [to: string, name: string])[],
  names: KnownNames,
): PaletteTarget[] {
  const text = typed.trim();
  const lower = text.toLowerCase();
  const all: PaletteTarget[] = [
    ...screens.map(([to, name]) => ({ kind: 'screen', name, to })),
    ...targetsOf('queue', names.queues, () => '/queues'),
    ...targetsOf('schedule', names.schedules, (name) => `/schedules?open=${encodeURIComponent(name)}`),
    ...targetsOf(
      'flow-control key',
      names.flowControlKeys,
      (name) => `/flow-control?search=${encodeURIComponent(name)}`,
    ),
    ...targetsOf('URL group', names.urlGroups, () => '/url-groups'),
  ];
  const matching = all.filter(({ name }) => name.toLowerCase().includes(lower));
  const startsWithText = ({ name }: PaletteTarget): boolean => name.toLowerCase().startsWith(lower);
  const sorted = [...matching.filter(startsWithText), ...matching.filter((target) => !startsWithText(target))];
  return [...idTargets(text), ...sorted, ...filterTargets(text)].slice(0, TARGETS_MAX);
}

function targetsOf(kind: string, names: readonly string[] = [], to: (name: string) => string): PaletteTarget[] {
  return names.map((name) => ({ kind, name, to: to(name) }));
}

function idTargets(text: string): PaletteTarget[] {
  const id = encodeURIComponent(text);
  if (/^msg_\S+$/.test(text)) return [{ kind: 'message', name: text, to: `/messages/${id}` }];
  if (/^wfr_\S+$/.test(text)) return [{ kind: 'run', name: text, to: `/runs/${id}` }];
  return [];
}

/** Other text may be a URL, a label or a host of messages. */
function filterTargets(text: string): PaletteTarget[] {
  if (text === '') return [];
  const value = encodeURIComponent(text);
  if (/^https?:\/\//i.test(text)) return [{ kind: 'messages to', name: text, to: `/messages?url=${value}` }];
  return [
    { kind: 'messages with the label', name: text, to: `/messages?label=${value}` },
    { kind: 'messages to the host', name: text, to: `/messages?host=${value}` },
  ];
}
