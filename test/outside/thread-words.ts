// On which channel the program of a thread of the tests says that it computes.
export const WORKING = 'a thread of the tests computes';
