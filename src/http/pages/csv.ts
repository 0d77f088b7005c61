// Comma-separated values (RFC 4180), for spreadsheets.

/**
 * What spreadsheets take for a formula: these signs, also as Japanese keyboards write them, after what is not seen and is passed over. Where a comma is
 * part of numbers, a cell of theirs ends at a semicolon.
 */
const FORMULA = /(^|;)(?=[\s\p{C}"]*[=+\-@＝＋－＠−]|[\t\r\n])/gu;
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

const harmless = (text: string): string => (NUMBER.test(text) ? text : text.replace(FORMULA, "$1'"));
const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
