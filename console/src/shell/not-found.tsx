/** The screen for an unknown URL. */
import { Link } from '@tanstack/react-router';
import { Page } from '../parts/panel.tsx';

export function NotFound() {
  return (
    <Page title="Page not found">
      <p>
        <Link to="/overview" className="text-accent underline">
          Overview
        </Link>
      </p>
    </Page>
  );
}
