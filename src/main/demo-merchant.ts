// The sandbox's demo merchant: made at the first start, its credentials printed at every one. Called by src/main/start.ts.
import { ensureDemoMerchant } from '../flow/merchants.ts';
import type { Config } from './config-table.ts';
import { DEMO_PASSWORD } from './config-table.ts';
import { wireSignIn } from './wire.ts';

/** `password` null: it was changed since, and nobody but the operator knows it. */
export type DemoMerchant = { readonly username: string; readonly password: string | null };

/** Sees to it that the demo merchant exists. A password that was changed is kept, unless BURSAR_DEMO_PASSWORD says another. */
export async function prepareDemo(config: Config, databaseUrl: string): Promise<DemoMerchant> {
  const wired = wireSignIn({ ...config, databaseUrl }, { applicationName: 'bursar start', maxConnections: 1 });
  try {
    const given = config.demoPassword;
    const password = given ?? DEMO_PASSWORD;
    const { hasPassword } = await ensureDemoMerchant(wired.ctx, password, given === null ? 'keep' : 'set');
    return { username: 'demo', password: hasPassword ? password : null };
  } finally {
    await wired.close();
  }
}

/** Its credentials and one command to paste. */
export function printDemo(url: string, { username, password }: DemoMerchant): void {
  const body = JSON.stringify({ username, password: password ?? 'YOUR PASSWORD' }).replaceAll("'", "'\\''");
  const shown = password ?? 'changed since by the operator, and kept; BURSAR_DEMO_PASSWORD sets another';
  console.log(`demo merchant: username ${username}, password ${shown}`);
  console.log(`try: curl -s ${new URL('/auth', url).href} -H 'content-type: application/json' -d '${body}'`);
}
