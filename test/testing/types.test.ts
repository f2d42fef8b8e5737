/** Checks the published types against the API, since they import nothing from it. */
import type { Static } from '@sinclair/typebox';
import { expectTypeOf, it } from 'vitest';
import type { RunListSchema } from '../../src/api/runs/run-log-views.ts';
import type { DeadMessageSchema, LogEntrySchema } from '../../src/api/schemas.ts';
import type { DeadView, LogEntryView, RunView } from '../../src/testing/types.ts';

it('match the API', () => {
  expectTypeOf<Static<typeof LogEntrySchema>>().toExtend<LogEntryView>();
  expectTypeOf<Static<typeof DeadMessageSchema>>().toExtend<DeadView>();
  expectTypeOf<Static<typeof RunListSchema>['runs'][number]>().toExtend<RunView>();
});
