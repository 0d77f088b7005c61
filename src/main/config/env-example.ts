// .env.example: every setting with its default and what it is for.
import { TABLE } from './variables.ts';

/** The text of .env.example: every variable with its default, by sections. */
export function envExample(): string {
  const parts = [
    '# Every setting, with its default. Copy to .env beside package.json, which every command and process reads; the environment takes precedence.',
    '# Put a value with white space before a # in quotation marks. A relative path starts at the folder of this file.',
  ];
  let title = '';
  for (const row of TABLE) {
    if (row.section !== title) parts.push(`\n# ${row.section}`);
    title = row.section;
    const orFile = row.secret ? ` (or the path of a file with it in ${row.name}_FILE)` : '';
    parts.push(`# ${row.help}${orFile}${row.unused === null ? '' : `; refused: ${row.unused}`}`);
    parts.push(row.fallback === null ? `#${row.name}=` : `${row.name}=${row.fallback}`);
  }
  return `${parts.join('\n')}\n`;
}
