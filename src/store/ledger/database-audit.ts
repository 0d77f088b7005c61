// Whether the database was put back to an earlier state, see audit.ts: as it was found at a start or by a worker
// (store/postgres/database-home.ts).
import { MAY_BE_MISSING } from '../postgres/database-replacements.ts';
import type { Question } from './audit.ts';

/** It stops nothing: what may have left since is compared by itself before anything is paid. */
export const PUT_BACK = 'DB-1';
export const TOLD_OF_DATABASE: readonly Question[] = [
  {
    id: PUT_BACK,
    says: 'no database was put back or replaced since an operator has last looked',
    text: `select 'found at ' || to_char(noticed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' (' || evidence || '): ${MAY_BE_MISSING}' as what
             from database_replacements where acknowledged_at is null order by noticed_at`,
  },
];
