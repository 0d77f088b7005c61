// Comma-separated values (RFC 4180), for spreadsheets.

/** Spreadsheets take what begins with one of these for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^-?\d+(\.\d+)?$/;

/** By this programs know that the file is UTF-8. */
export const BYTE_ORDER_MARK = '\uFEFF';

/**
 * One line. What a spreadsheet would take for a formula begins with an apostrophe; numbers stay as they are.
 * @param cells null and undefined are empty
 */
export function csvLine(cells: readonly (string | number | null | undefined)[]): string {
  return `${cells.map((cell) => quoted(harmless(String(cell ?? '')))).join(',')}\r\n`;
}

const harmless = (text: string): string => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
