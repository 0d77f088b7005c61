// The sandbox's demo merchant, created at the first start.
import { ensureDemoMerchant } from '../../flow/merchants/merchants.ts';
import type { SignInContext } from '../../flow/sign-in/token-pair.ts';
import { type Config, DEMO_PASSWORD } from '../config/variables.ts';
import type { DemoLogin } from './demo-login.ts';

/** Ensures that the demo merchant exists. A changed password is kept, unless BURSAR_DEMO_PASSWORD sets another. */
export async function prepareDemo({ demoPassword: given }: Config, ctx: SignInContext): Promise<DemoLogin> {
  const password = given ?? DEMO_PASSWORD;
  const { hasPassword } = await ensureDemoMerchant(ctx, password, given === null ? 'keep' : 'set');
  return { username: 'demo', password: hasPassword ? password : null };
}
