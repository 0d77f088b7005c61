// What the conformance suite has shown: currency × engine × case, printed at its end.

type Note = { readonly currency: string; readonly engine: string; readonly what: string; readonly state: string };

const SIGNS: Readonly<Record<string, string>> = { run: 'ok', pass: 'ok', fail: 'FAIL', skip: '–' };

export function createMatrix(): { note(note: Note): void; text(): string } {
  const notes: Note[] = [];
  return {
    note: (note) => notes.push(note),
    text() {
      const columns = [...new Map(notes.map(({ currency, engine }) => [`${currency} ${engine}`, { currency, engine }])).values()];
      const cases = [...new Set(notes.map((note) => note.what))];
      const legend = columns.map(({ currency, engine }, n) => `  ${n + 1} ${currency.padEnd(5)} ${engine}`);
      const rows = cases.map((what) => {
        const cells = columns.map((column) => {
          const seen = notes.find((one) => one.what === what && one.engine === column.engine && one.currency === column.currency);
          return (seen === undefined ? '–' : (SIGNS[seen.state] ?? seen.state)).padStart(5);
        });
        return `${cells.join('')}  ${what}`;
      });
      const numbers = columns.map((_, n) => String(n + 1).padStart(5)).join('');
      return ['conformance matrix', ...legend, numbers, ...rows].join('\n');
    },
  };
}
