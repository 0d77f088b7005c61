// `bursar console`: the code that opens the operator's console in a browser.
import type { Command } from 'commander';
import { CODE_MINUTES, makeOperatorCode } from '../../flow/sign-in/operator-sessions.ts';
import { leaf, print } from './output.ts';
import { withSignIns } from './service-access.ts';

/** Adds `console`. Whoever may run it may read the data folder anyway, whose key makes the code. */
export function addConsoleCommand(bursar: Command): void {
  leaf(bursar, 'console', `Prints a code that opens the operator console at /ops within ${CODE_MINUTES} minutes.`).action(
    async ({ json }: { readonly json?: boolean }) => {
      const code = await withSignIns(async (ctx) => makeOperatorCode(ctx));
      print(json, { code, minutes: CODE_MINUTES }, [code, `It opens the console at /ops within ${CODE_MINUTES} minutes, once.`]);
    },
  );
}
