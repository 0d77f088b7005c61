// `node bin/launch.mjs …` does what `sh bin/launch.sh …` does, for callers without a shell: it replaces itself by the shell script where
// this Node can, and stays in front of it where it cannot (before Node 22.15).
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('launch.sh', import.meta.url));
const args = [script, ...process.argv.slice(2)];
process.execve?.('/bin/sh', ['sh', ...args]);

// the closed channel tells the program when we are gone, however we ended
const child = spawn('sh', args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`launch: sh does not run: ${error.message}`);
  process.exit(1);
});
child.on('close', (code, signal) => process.exit(code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)));
