/** What an address shows that leads to no screen. */
import { Link } from '@tanstack/react-router';
import { Page } from '../parts/panel.tsx';

export function NoScreen() {
  return (
    <Page title="There is no such screen">
      <p>
        <Link to="/overview" className="text-accent underline">
          Overview
        </Link>
      </p>
    </Page>
  );
}
