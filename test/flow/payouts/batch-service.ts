// A service on a database whose merchant's payouts leave in batches, anew for each test: what the tests of batches share.
import { afterEach, beforeEach } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { batchesOf } from '../../support/batches.ts';
import { tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

export let service: ServiceOnDatabase;
export let ctx: Context;
export let batches: ReturnType<typeof batchesOf>;

/** Opens it before each test of the file, and drops it afterwards. */
export function batchServiceForEach(): void {
  beforeEach(async () => {
    service = await openServiceOnDatabase();
    ({ ctx } = service);
    batches = batchesOf(service);
    await tellFee(ctx);
  });
  afterEach(() => service.drop());
}
