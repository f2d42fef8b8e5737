/**
 * The meaning of each class of PostgreSQL errors: all of
 * https://www.postgresql.org/docs/current/errcodes-appendix.html.
 */
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { StoreFull, StoreUnavailable } from '../../src/engine/store-errors.ts';
import { LockNotFree, StatementRefused } from '../../src/store/driver.ts';
import { classify, isConflict } from '../../src/store/drivers/postgres/failures.ts';

type Meaning = 'defect' | 'unavailable' | 'refused' | 'full' | 'locked' | 'conflict';

/** For each class, one code for each meaning in it. */
const MEANINGS: Record<string, Record<string, Meaning>> = {
  '03': { '03000': 'refused' },
  '08': { '08000': 'unavailable', '08006': 'unavailable', '08P01': 'unavailable' },
  '09': { '09000': 'refused' },
  '0A': { '0A000': 'refused' },
  '0B': { '0B000': 'refused' },
  '0F': { '0F000': 'refused' },
  '0L': { '0L000': 'refused' },
  '0P': { '0P000': 'refused' },
  '0Z': { '0Z000': 'refused' },
  '10': { '10608': 'refused' },
  '20': { '20000': 'refused' },
  '21': { '21000': 'defect' },
  '22': { '22000': 'defect', '22003': 'defect', '22021': 'defect', '22P02': 'defect', '22P05': 'refused' },
  '23': { '23000': 'defect', '23502': 'defect', '23503': 'defect', '23505': 'conflict', '23514': 'defect' },
  '24': { '24000': 'refused' },
  '25': { '25000': 'unavailable', '25006': 'unavailable', '25P03': 'conflict', '25P04': 'unavailable' },
  '26': { '26000': 'unavailable' },
  '27': { '27000': 'refused' },
  '28': { '28000': 'unavailable', '28P01': 'unavailable' },
  '2B': { '2B000': 'refused' },
  '2D': { '2D000': 'refused' },
  '2F': { '2F000': 'refused' },
  '34': { '34000': 'refused' },
  '38': { '38000': 'refused' },
  '39': { '39000': 'refused' },
  '3B': { '3B000': 'refused' },
  '3D': { '3D000': 'unavailable' },
  '3F': { '3F000': 'unavailable' },
  '40': { '40000': 'unavailable', '40001': 'conflict', '40002': 'unavailable', '40P01': 'conflict' },
  '42': {
    '42501': 'unavailable',
    '42601': 'defect',
    '42703': 'defect',
    '42804': 'defect',
    '42883': 'unavailable',
    '42P01': 'unavailable',
    '42P05': 'unavailable',
    '42P10': 'unavailable',
  },
  '44': { '44000': 'refused' },
  '53': { '53000': 'unavailable', '53100': 'full', '53200': 'unavailable', '53300': 'unavailable' },
  '54': { '54000': 'refused', '54001': 'refused' }, // 54000 also means that a server has no transaction ids left
  '55': { '55000': 'unavailable', '55006': 'unavailable', '55P03': 'locked' },
  '57': { '57000': 'unavailable', '57014': 'unavailable', '57P01': 'unavailable', '57P03': 'unavailable' },
  '58': { '58000': 'unavailable', '58030': 'unavailable' },
  '72': { '72000': 'refused' },
  F0: { F0000: 'refused' },
  HV: { HV000: 'refused' },
  P0: { P0001: 'refused' },
  XX: { XX000: 'refused', XX001: 'refused', XX002: 'refused' },
  // A class that no server has yet.
  ZZ: { ZZ000: 'refused' },
};

function meaningOf(state: string): Meaning {
  const error = Object.assign(new pg.DatabaseError('as the server says it', 0, 'error'), { code: state });
  if (isConflict(error)) return 'conflict';
  const meaning = classify(error);
  if (meaning === error) return 'defect';
  if (meaning instanceof StoreFull) return 'full';
  if (meaning instanceof LockNotFree) return 'locked';
  if (meaning instanceof StatementRefused) return 'refused';
  expect(meaning).toBeInstanceOf(StoreUnavailable);
  return 'unavailable';
}

describe.each(Object.entries(MEANINGS))('SQLSTATE class %s', (_, codes) => {
  it.each(Object.entries(codes))('takes %s for: %s', (state, meaning) => {
    expect(meaningOf(state)).toBe(meaning);
  });
});

it("keeps the server's own words out of the public reason", () => {
  const error = Object.assign(new pg.DatabaseError('no pg_hba.conf entry for host "10.0.0.7"', 0, 'error'), {
    code: '28000',
  });
  expect(classify(error)).toMatchObject({
    reason: 'the database is not available (it refuses the login, SQLSTATE 28000)',
    message:
      'the database is not available (it refuses the login, SQLSTATE 28000): no pg_hba.conf entry for host "10.0.0.7"',
  });
});
