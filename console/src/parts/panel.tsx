/** Frames of the content of a screen. */
interface PanelProps {
  title?: string;
  /** Buttons to the right of the title. */
  actions?: React.ReactNode;
  children: React.ReactNode;
}

export function Panel({ title, actions, children }: PanelProps) {
  return (
    <section className="min-w-0 rounded-lg border border-line bg-panel">
      {(title !== undefined || actions !== undefined) && (
        <header className="flex flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-2">
          {title !== undefined && <h2 className="min-w-0 font-semibold wrap-anywhere">{title}</h2>}
          {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
        </header>
      )}
      <div className="p-4">{children}</div>
    </section>
  );
}

interface PageProps extends PanelProps {
  title: string;
  /** One line under the title. */
  about?: React.ReactNode;
}

/** A whole screen; its title is the heading of the page. */
export function Page({ title, about, actions, children }: PageProps) {
  return (
    <div className="flex flex-col gap-4">
      <header className="flex flex-wrap items-start justify-between gap-2">
        <div className="min-w-0 flex-1 basis-44">
          <h1 title={title} className="line-clamp-2 text-lg font-semibold break-words">
            {title}
          </h1>
          {about !== undefined && <p className="text-quiet">{about}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Names and values in two columns. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: React.ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1.5">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-quiet">{name}</dt>
            <dd className="break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}
