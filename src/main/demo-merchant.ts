// The sandbox's demo merchant: made at the first start, its credentials printed at every one. Called by src/main/start.ts.
import { ensureDemoMerchant } from '../flow/merchants.ts';
import type { Config } from './config.ts';
import { wireSignIn } from './wire.ts';

export type DemoMerchant = { readonly username: string; readonly password: string; readonly affiliateId: string };

/** Sees to it that the demo merchant exists and has the configured password. */
export async function prepareDemo(config: Config, databaseUrl: string): Promise<DemoMerchant> {
  const wired = wireSignIn({ ...config, databaseUrl }, { applicationName: 'bursar start', maxConnections: 1 });
  try {
    const { affiliateId } = await ensureDemoMerchant(wired.ctx, config.demoPassword);
    return { username: 'demo', password: config.demoPassword, affiliateId };
  } finally {
    await wired.close();
  }
}

/** Its credentials and one command to paste. */
export function printDemo(url: string, { username, password }: DemoMerchant): void {
  const body = JSON.stringify({ username, password }).replaceAll("'", "'\\''");
  console.log(`demo merchant: username ${username}, password ${password}`);
  console.log(`try: curl -s ${new URL('/auth', url).href} -H 'content-type: application/json' -d '${body}'`);
}
