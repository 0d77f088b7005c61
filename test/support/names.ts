// Names that the tests' global setup and the test files share.

/** The migrated database that every test's database is a copy of. */
export const TEMPLATE = 'bursar_template';
