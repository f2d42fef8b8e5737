/** The published types stand alone, so that nothing but this holds them to what the API answers. */
import type { Static } from '@sinclair/typebox';
import { expectTypeOf, it } from 'vitest';
import type { RunListSchema } from '../../src/api/runs/run-log-views.ts';
import type { DeadMessageSchema, LogEntrySchema } from '../../src/api/schemas.ts';
import type { DeadView, LogEntryView, RunView } from '../../src/testing/types.ts';

it('are those of the API', () => {
  expectTypeOf<Static<typeof LogEntrySchema>>().toExtend<LogEntryView>();
  expectTypeOf<Static<typeof DeadMessageSchema>>().toExtend<DeadView>();
  expectTypeOf<Static<typeof RunListSchema>['runs'][number]>().toExtend<RunView>();
});
